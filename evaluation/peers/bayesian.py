"""SynthID-Text's Bayesian detector, trained on texts of the model as the recipe of its authors has it.

The recipe is synthid_text/detector_training.py of huggingface/transformers-research-projects. Three things
differ. There are tens of texts and not thousands, so minibatches are smaller, and the penalty's weight is
chosen by cross-entropy on the texts that were held out, the recipe's other metric. Each text has keys of its
own. And an end of text is a token like others here, while the recipe masks what follows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import BayesianDetectorConfig, BayesianDetectorModel

Bits = NDArray[np.int64]
"""Of the scored tokens of a text [tokens, layers]."""

EPOCHS, LEARNING_RATE, MINIBATCH, HELD_OUT = 50, 2.1e-2, 16, 0.3
PENALTIES = np.logspace(-3, -2, num=4).tolist()
UNMARKED_TOKENS = 100
"""To which the recipe cuts texts without a mark."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Texts to learn from.

    Attributes:
        bits: [texts, tokens, layers].
        mask: 1 where there is a scored token [texts, tokens].
        labels: 1 for marked ones [texts].
    """

    bits: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor

    @classmethod
    def of(cls, marked: Sequence[Bits], unmarked: Sequence[Bits]) -> "Examples":
        """Both kinds, filled up to one length."""
        texts = [*marked, *(bits[:UNMARKED_TOKENS] for bits in unmarked)]
        bits, mask = stacked(texts)
        return cls(bits, mask, torch.tensor([1.0] * len(marked) + [0.0] * len(unmarked)))

    def split(self, seed: int) -> tuple["Examples", "Examples"]:
        """Those to learn from, and those that are held out; of each kind the same share."""
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(seed))
        kinds = [order[self.labels[order] == kind] for kind in (0.0, 1.0)]
        counts = [round(HELD_OUT * len(kind)) for kind in kinds]
        pairs = list(zip(kinds, counts, strict=True))
        held = torch.cat([kind[:count] for kind, count in pairs])
        return self.at(order[~torch.isin(order, held)]), self.at(held)

    def at(self, rows: torch.Tensor) -> "Examples":
        """Those with these numbers."""
        return Examples(self.bits[rows], self.mask[rows], self.labels[rows])


class Bayesian:
    """transformers' `BayesianDetectorModel` after training."""

    def __init__(self, model: Any) -> None:
        self._model = model.eval()

    @torch.inference_mode()
    def log_odds(self, texts: Sequence[Bits]) -> NDArray[np.float64]:
        """ln P(bits | marked) - ln P(bits | unmarked) of each text [texts].

        The detector's posterior rises with it, and is 1 in floating point long before it ends to rise.
        """
        bits, mask = stacked(texts)
        likelihood = self._model.likelihood_model_watermarked(bits)  # [texts, tokens, layers]
        odds = (torch.log(likelihood / 0.5) * mask[..., None]).double().sum(dim=(1, 2))
        found: NDArray[np.float64] = odds.numpy()
        return found


def train(marked: Sequence[Bits], unmarked: Sequence[Bits], seed: int = 0) -> Bayesian:
    """The best of the detectors with four weights of the penalty.

    Raises:
        ValueError: there are fewer than four texts of a kind.
    """
    if min(len(marked), len(unmarked)) < 4:
        raise ValueError("the Bayesian detector needs four texts with a mark and four without to learn from")
    learned, held = Examples.of(marked, unmarked).split(seed)
    tried = [_trained(learned, held, penalty, seed) for penalty in PENALTIES]
    return Bayesian(min(tried, key=lambda pair: pair[0])[1])


def _trained(learned: Examples, held: Examples, penalty: float, seed: int) -> tuple[float, Any]:
    """The least held-out cross-entropy of all epochs, and the model after the last of them."""
    torch.manual_seed(seed)
    model = BayesianDetectorModel(BayesianDetectorConfig(watermarking_depth=learned.bits.shape[2]))
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    starts = range(0, len(learned.labels), MINIBATCH)
    least = np.inf
    for _ in range(EPOCHS):
        for start in starts:
            part = learned.at(torch.arange(start, min(start + MINIBATCH, len(learned.labels))))
            optimizer.zero_grad()
            _loss(model, part, penalty / len(starts)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            least = min(least, _loss(model, held, 0.0).item())
    return least, model


def _loss(model: Any, examples: Examples, penalty: float) -> torch.Tensor:
    made = model(examples.bits, examples.mask, labels=examples.labels, loss_batch_weight=penalty)
    loss: torch.Tensor = made[1]
    return loss


def stacked(texts: Sequence[Bits]) -> tuple[torch.Tensor, torch.Tensor]:
    """Bits [texts, longest, layers] and which of their tokens count [texts, longest]."""
    longest = max(2, *(len(bits) for bits in texts))  # the model takes an axis of one for none
    bits = torch.zeros(len(texts), longest, texts[0].shape[1])
    mask = torch.zeros(len(texts), longest)
    for row, of_text in enumerate(texts):
        bits[row, : len(of_text)] = torch.from_numpy(of_text)
        mask[row, : len(of_text)] = 1.0
    return bits, mask
