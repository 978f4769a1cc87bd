"""The attacker: the completions it asks for, and the public model with their blocks made likelier."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.experiment_cells import Cell, prf_key, sampling_seed
from ttmark.shared.watermark import Watermark, scored_positions

_PRIOR = 1.0  # completions that a context is thought to have had at the model's own probabilities
_STRENGTH = 3.0  # exponent of a block's preference
_LEAST = 1e-6  # what counts as a block's least probability
_STEER = 8.0  # factor of a block after which the context is known again

Tokens = tuple[int, ...]


class Forger(Watermark):
    """A stand-in for the victim's watermark in the engine that knows its outputs and not its key."""

    def __init__(self, victim: Watermark, texts: Sequence[NDArray[np.int64]]) -> None:
        super().__init__(victim.scheme, victim.block_size, victim.context_width, victim.parameters)
        self.seen: defaultdict[Tokens, Counter[Tokens]] = defaultdict(Counter)
        size, width = victim.block_size, victim.context_width
        for text in texts:
            for start in scored_positions(text, size, width):
                context, block = text[start - width : start], text[start : start + size]
                self.seen[tuple(context.tolist())][tuple(block.tolist())] += 1

    def reweight(
        self,
        keys: NDArray[np.int64],  # noqa: ARG002 - not known
        contexts: NDArray[np.int64],
        blocks: NDArray[np.int64],
        probs: NDArray[np.float64],
        offsets: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """The model's probabilities with the preferences made stronger; shapes as in `Watermark.reweight`."""
        weighted = probs.copy()
        for context, (start, stop) in zip(contexts.tolist(), pairwise(offsets.tolist()), strict=True):
            rows = [tuple(row) for row in blocks[start:stop].tolist()]
            mine = probs[start:stop] / probs[start:stop].sum()
            weights = mine * self.preference(tuple(context), rows, mine) ** _STRENGTH
            following = (tuple([*context, *row][-self.context_width :]) for row in rows)
            weights *= [_STEER if after in self.seen else 1.0 for after in following]
            weighted[start:stop] = weights / weights.sum()
        return weighted

    def preference(
        self, context: Tokens, blocks: Sequence[Tokens], probs: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """How much more often than the model's `probs` [n] each block followed the context; 1: not known."""
        seen = self.seen.get(context, Counter())
        counts = np.array([seen[block] for block in blocks])
        likely = np.maximum(probs, _LEAST)
        preference: NDArray[np.float64] = (counts + _PRIOR * likely) / ((seen.total() + _PRIOR) * likely)
        return preference


@dataclass(frozen=True)
class VictimCell(Cell):
    """Completions that the attacker asked for; without a pool they have one key.

    Attributes:
        texts_per_key: the key is rotated after so many; None: never.
        skipped_prompts: the first ones are kept for the forgeries.
    """

    texts_per_key: int | None = None
    skipped_prompts: int = 0

    @property
    def name(self) -> str:
        """See `Cell`."""
        parts = [f"asked-{super().name}"] + [f"every{self.texts_per_key}"] * bool(self.texts_per_key)
        return "-".join([*parts, *[f"skip{self.skipped_prompts}"] * bool(self.skipped_prompts)])

    def prompt_ids(self, index: int, prompts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """See `Cell`."""
        return super().prompt_ids(index, prompts[self.skipped_prompts :])

    def version(self, index: int) -> int:
        """Number of the key version, or of the key of a pool, that a text was made with."""
        if self.pool:
            return sampling_seed(index, "pool", self.name) % self.pool
        return index // self.texts_per_key if self.texts_per_key else 0

    def key(self, seed: int, index: int) -> bytes:
        """See `Cell`."""
        return self.keys(seed, [self.version(index)])[0]

    def keys(self, seed: int, versions: Iterable[int]) -> list[bytes]:
        """The keys of versions, or of a pool."""
        return [prf_key(seed, self.name, version) for version in versions]


@dataclass(frozen=True)
class ForgeryCell(Cell):
    """Texts that the attacker makes of the first `asked` completions of a victim."""

    victim: VictimCell | None = None
    asked: int = 0
    forger: Forger | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """See `Cell`."""
        return f"forged-from{self.asked}-{self.victim.name if self.victim else ''}"

    def watermark(self) -> Watermark:
        """See `Cell`."""
        return self.forger or super().watermark()

    def key(self, seed: int, index: int) -> bytes:  # noqa: ARG002 - the forger has none
        """Of no meaning."""
        return bytes(16)
