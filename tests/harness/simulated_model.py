"""A simulated language model: the source of texts that costs nothing and has the paper's entropy.

Steps are either confident (nearly one candidate) or open (a Zipf-like tail). Which they are, and which tokens
the candidates are, is a hash of the tokens before; how many are confident varies by document.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.evaluation.experiment_cells import Cell, SamplingSetting, sampling_seed
from ttmark.evaluation.run_folder import GeneratedText, OnText, OnTokens
from ttmark.gen_service.decoding.filtered_tokens import FilterParams, Support
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.shared.watermark.likelihood.forward_backward_numpy import finalised
from ttmark.shared.watermark.prf import key_lanes

VOCABULARY = 509
"""A prime, so that candidates at equal distances are different tokens."""
CANDIDATES = 50
CONFIDENT_SHARE = 0.615
"""The one knob: with top-k 50 and top-p 0.95 single-token SynthID-Text has a median p of about 1e-5 at 200
tokens, the paper's entropy."""
CONCENTRATION = 12.0
"""Beta distribution of a document's confident share: this many prior steps."""
MEMORY = 8
"""Tokens that a next-token distribution depends on, besides the document's number."""


class SimulatedModel:
    """Next-token distributions; the first token of a text is the number of its document."""

    def branch_logits(self, prefix: Sequence[int], paths: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logits after `prefix` and each path, all of one length, [paths, vocab]."""
        recent = np.array([[*prefix[1:], *path][-MEMORY:] for path in paths], dtype=np.uint64)
        state = np.full(len(paths), prefix[0], dtype=np.uint64)
        for column in recent.T:
            state = _mixed(state ^ column)
        beta = CONFIDENT_SHARE * CONCENTRATION, (1 - CONFIDENT_SHARE) * CONCENTRATION
        share = np.random.default_rng(prefix[0]).beta(*beta)
        certain, exponent, top, start, stride = (_mixed(state + np.uint64(lane)) for lane in range(1, 6))
        confident = (_uniform(certain) < share)[:, None]
        steepness = np.where(confident, 1.2, 1.2 + 1.8 * _uniform(exponent)[:, None])
        tail = np.arange(1, CANDIDATES + 1, dtype=np.float64) ** -steepness  # [paths, candidates]
        probs = tail / tail.sum(axis=1, keepdims=True)
        first = 0.9 + 0.1 * _uniform(top)[:, None]
        rest = probs[:, :-1] / probs[:, :-1].sum(axis=1, keepdims=True) * (1 - first)
        probs = np.where(confident, np.concatenate([first, rest], axis=1), probs)
        steps = 1 + stride % np.uint64(VOCABULARY - 1)
        # Small numbers, so that no product wraps round and all candidates are different.
        apart = steps[:, None] * np.arange(CANDIDATES, dtype=np.uint64)
        ids = ((start[:, None] % np.uint64(VOCABULARY) + apart) % np.uint64(VOCABULARY)).astype(np.int64)
        logits = np.full((len(paths), VOCABULARY), -np.inf, dtype=np.float32)
        np.put_along_axis(logits, ids, np.log(probs).astype(np.float32), axis=1)
        return torch.from_numpy(logits)

    def logits(self, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
        """Logits from which each token of the completion was drawn, [tokens, vocab]."""
        text = [*prompt, *completion]
        rows = [self.branch_logits(text[:end], [()]) for end in range(len(prompt), len(text))]
        return torch.cat(rows)


class SimulatedSource:
    """Texts of the simulated model, one after the other, as the paper's Algorithm 1 says."""

    def __init__(self) -> None:
        self.language_model = SimulatedModel()
        self.prompts = [(document,) for document in range(VOCABULARY)]

    def generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        for index in indices:
            tokens = write_text(
                self.language_model,
                cell,
                cell.key(seed, index),
                self.prompts[index % len(self.prompts)],
                np.random.default_rng(sampling_seed(seed, cell.name, index)),
            )
            on_tokens(len(tokens))
            on_text(GeneratedText(index, tokens))

    def close(self) -> None:
        """Nothing is open."""


def block_distribution(
    model: SimulatedModel, setting: SamplingSetting, text: Sequence[int], tokens: int
) -> tuple[list[list[int]], NDArray[np.float64]]:
    """The joint distribution of the next tokens: paths [N][tokens] and their probabilities [N]."""
    paths: list[list[int]] = [[]]
    probs = np.ones(1)
    for _ in range(tokens):
        after = supports(model.branch_logits(text, paths), setting)
        probs = np.concatenate([p * support.probs for p, support in zip(probs, after, strict=True)])
        paths = [
            [*path, token]
            for path, support in zip(paths, after, strict=True)
            for token in support.ids.tolist()
        ]
    return paths, probs


def write_text(
    model: SimulatedModel, cell: Cell, key: bytes, prompt: Sequence[int], draws: np.random.Generator
) -> tuple[int, ...]:
    """One text of a cell, block by block from the (watermarked) joint distribution (Algorithm 1)."""
    watermark = cell.watermark() if cell.scheme else None
    tracker = watermark.tracker() if watermark else None
    lanes = key_lanes(key)[None]
    tokens: list[int] = []
    while len(tokens) < cell.tokens:
        paths, probs = block_distribution(model, cell.setting, [*prompt, *tokens], cell.block_size)
        context = tracker.next_context(tokens) if tracker else None
        if watermark and context is not None:
            blocks, offsets = np.array(paths), np.array([0, len(paths)])
            probs = watermark.reweight(lanes, np.array([context]), blocks, probs, offsets)
        tokens += paths[draws.choice(len(paths), p=probs / probs.sum())]
    return tuple(tokens[: cell.tokens])


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64: a hash of each value."""
    return finalised(values + np.uint64(0x9E3779B97F4A7C15))


def _uniform(values: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (values >> np.uint64(11)) / 2.0**53


def supports(logits: torch.Tensor, setting: SamplingSetting) -> list[Support]:
    """What the setting's filters leave of each row."""
    params = FilterParams(setting.temperature, setting.top_k, setting.top_p)
    found = filter_rows(logits, [params] * len(logits))
    return [whole(support) for support in found if support is not None]


def whole(support: Support) -> Support:
    """The same with every token listed."""
    if support.tail is None:
        return support
    ids, weights = support.tail.listed()
    order = np.argsort(-weights, kind="stable")
    beyond = weights[order] / weights.sum() * support.tail.mass
    return Support(np.concatenate([support.ids, ids[order]]), np.concatenate([support.probs, beyond]))
