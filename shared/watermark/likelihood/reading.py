"""What a language model that read a text adds: how likely its blocks are, and where it was edited.

Nothing here sees a key: a reading that is wrong, or made up, costs power and nothing else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ttmark.shared.watermark.score_distributions import Floats

_NATS_PER_BIT = float(np.log(2.0))
_LEAST = -1e3
_STEPS = 1024.0  # of a nat
# Of a token's surprise: the share of the bits of the token after it that count with its own, bits that move
# nothing, what each further bit adds, and the most; fitted to edited texts (docs/results/core.md).
_AFTER, _CALM, _PER_BIT, _MOST = 0.5, 11.0, 0.12, 0.97


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Natural log-probability of each token of a text after those before it [tokens].

    What is not a number, or above 0, counts as 0: nothing is then expected of the block, and no edit is seen.
    """

    log_probs: Floats

    @property
    def clean(self) -> Floats:
        """Without what no model says, in steps so large that no order of sums matters."""
        said = np.clip(np.nan_to_num(self.log_probs, nan=0.0, posinf=0.0, neginf=_LEAST), _LEAST, 0.0)
        steps: Floats = np.round(said * _STEPS) / _STEPS
        return steps

    def of_blocks(self, context_width: int, block_size: int) -> Floats:
        """Log-probability of the block at each position, from the first that has a context on [positions]."""
        together: Floats = _windows(self.clean[context_width:], block_size).sum(axis=1)
        return together

    def surprise(self, context_width: int, block_size: int) -> Floats:
        """How far the chance to leave a marked run goes towards 1 before each block, 0 to 1 [positions].

        By the most surprising token of the block and its context: an editor may have put it there.
        """
        bits = -self.clean / _NATS_PER_BIT
        told = bits + _AFTER * np.append(bits[1:], np.zeros(min(1, bits.size)))
        parts = np.clip((told - _CALM) * _PER_BIT, 0.0, _MOST)
        most: Floats = _windows(parts, context_width + block_size).max(axis=1, initial=0.0)
        return most


def _windows(values: Floats, width: int) -> NDArray[np.float64]:
    """All runs of `width` values [.., width], none where there are fewer."""
    return sliding_window_view(values, width) if values.size >= width else np.empty((0, width))
