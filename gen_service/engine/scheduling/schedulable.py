"""A sequence as the scheduler sees it: rows and tokens are numbers here, not tensors."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Extent:
    """Arena rows [start, start + length)."""

    start: int
    length: int

    @property
    def stop(self) -> int:
        return self.start + self.length


class Work(NamedTuple):
    """What one sequence computes in a pass.

    Attributes:
        cached: tokens that it has in the cache afterwards; no more than before where it probes.
    """

    rows: int
    cached: int


class Schedulable(Protocol):
    """What the scheduler knows of a sequence.

    Attributes:
        repeatable: whether its text must not depend on what is in the cache.
        token_limit: tokens that there will be at most.
        tokens: prompt and completion.
        group_ends: numbers of tokens after each group that was sampled together.
        extent: its cache rows, while it runs.
        cached: tokens in the cache.
        reused: prompt tokens that were in the cache when it was first admitted; None before.
        prompt_cut: a prompt is computed in pieces that end at multiples of it.
    """

    tenant: str
    repeatable: bool
    token_limit: int
    tokens: list[int]
    prompt_length: int
    group_ends: list[int]
    extent: Extent | None
    cached: int
    reused: int | None
    prompt_cut: int

    @property
    def token_count(self) -> int:
        """Tokens so far."""

    @property
    def most_reused(self) -> int:
        """Its first tokens that others may have computed for it: of the rest it needs the logits."""

    def next_work(self, chunk: int, limit: int) -> Work:
        """Its probes, or its next tokens to cache: a chunk of the prompt, or up to about `limit` others."""

    def forget_cache(self) -> None:
        """Its rows are gone: it starts again from its tokens."""
