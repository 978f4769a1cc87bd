"""What a request's completions are marked with, or why they are not."""

from dataclasses import dataclass, field
from typing import Literal

from ttmark.gen_service.engine import Marking

ManifestDemand = Literal["always", "never"]
DEFAULT_RULE = "default"
"""Of the marking policy, where no other rule is for the request."""


@dataclass(frozen=True, slots=True)
class MarkingChoice:
    """The marking, or why there is none.

    Attributes:
        marking: with the first of `pool`.
        block_size: tokens of a block: those of the key, even where it is not used, else one.
        pool: the keys one of which each completion is marked with: those of the version's pool, or that of
            the payload alone.
        rule: of the marking policy, that decided.
        manifest: whether that rule wants signed manifests; None: it says nothing of them.
    """

    marking: Marking | None
    unmarked_reason: str | None = None
    block_size: int = 1
    pool: tuple[bytes, ...] = field(default=(), repr=False)
    rule: str = DEFAULT_RULE
    manifest: ManifestDemand | None = None
