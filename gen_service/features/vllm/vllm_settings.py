"""Settings of the vLLM engine: plain values, read from nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSIONS = ("0.32.0", "0.33.0")
"""Of vLLM; what is touched of it is checked in their sources."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """How vLLM runs a model.

    Attributes:
        model_id: name under which the model is served; the folder's name if None.
        dtype: "float32", "bfloat16", "float16", or "auto" (vLLM's choice).
        max_sequences: sequences that run at the same time.
        max_waiting: requests that may wait for a place; one more is refused with `Overloaded`.
        reading_share: what readings may take while something is written: rows for each row that is written,
            and of the places in the queue as many, which are theirs alone.
        max_branches: candidates of a block level that are probed together.
        scratch_blocks: blocks of the KV cache, for each KV group, that branches write to; None: one for each
            branch that may be probed in a step, at most `MOST_SCRATCH_BLOCKS`. With fewer a step probes in
            several forwards.
        prefix_cache: reuse the beginnings of prompts, within a tenant.
        request_seconds: time after which a request is failed, from its arrival; None is no limit.
        arguments: further ones for vLLM, in its own names (of `AsyncEngineArgs`).
    """

    model_id: str | None = None
    dtype: str = "auto"
    max_sequences: int = 32
    max_waiting: int = 256
    reading_share: float = 0.2
    max_branches: int = 8
    scratch_blocks: int | None = None
    prefix_cache: bool = True
    request_seconds: float | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


MOST_SCRATCH_BLOCKS = 256


def scratch_blocks(settings: VllmSettings) -> int:
    if settings.scratch_blocks is not None:
        return settings.scratch_blocks
    return min(settings.max_sequences * settings.max_branches, MOST_SCRATCH_BLOCKS)
