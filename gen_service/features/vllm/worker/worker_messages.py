"""What the API's process and the workers tell each other: requests, and what came of each step.

Requests cross vLLM's process boundary in memory, never in vLLM's own arguments.
"""

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.gen_service.decoding.request import Delta, GenerationRequest, Marking, ReadingRequest
from ttmark.gen_service.engine.loop.engine_metrics import ROW_KINDS, STEP_PARTS
from ttmark.gen_service.features.structured.grammars.grammar import Grammar, GrammarSource
from ttmark.shared.vault.confidential import Confidential

_MARKING, _GRAMMAR = "marking", "grammar"


@dataclass(frozen=True, slots=True)
class WorkerOpening:
    """What a worker needs to know before the first request.

    Attributes:
        address: where its reports go (ZeroMQ).
        folder: the model's, for its tokenizer.
        max_branches: branches of a block level that are probed together.
    """

    address: str
    folder: Path
    eos_token_ids: tuple[int, ...]
    vocab_size: int
    max_branches: int


@dataclass(frozen=True, slots=True, repr=False)
class Ticket(Confidential):
    """A request under a name that says nothing of it; vLLM sees the name alone."""

    name: str
    request: GenerationRequest | ReadingRequest

    def sealed(self) -> bytes:
        """For the worker's `open_ticket`; holds the key, so it is written nowhere."""
        parts: dict[str, Any] = {each.name: getattr(self.request, each.name) for each in fields(self.request)}
        if isinstance(self.request, GenerationRequest):
            marking, grammar = self.request.marking, self.request.grammar
            if marking is not None:
                parts[_MARKING] = {each.name: getattr(marking, each.name) for each in fields(marking)}
                watermark = marking.watermark
                parts[_MARKING]["watermark"] = (
                    type(watermark),
                    (watermark.scheme, watermark.block_size, watermark.context_width),
                    dict(watermark.parameters),
                )
            if isinstance(grammar, Grammar):
                parts[_GRAMMAR] = grammar.source
        return pickle.dumps((self.name, type(self.request), parts))


def open_ticket(sealed: bytes, compile_grammar: Callable[[GrammarSource], Grammar]) -> Ticket:
    """What `Ticket.sealed` made, in the worker.

    Args:
        compile_grammar: makes a grammar from its source; another process cannot hand it over.
    """
    name, kind, parts = pickle.loads(sealed)  # noqa: S301 - from our own parent process
    if parts.get(_MARKING) is not None:
        marking = dict(parts[_MARKING])
        watermark, arguments, parameters = marking["watermark"]
        parts[_MARKING] = Marking(**marking | {"watermark": watermark(*arguments, parameters)})
    if parts.get(_GRAMMAR) is not None:
        parts[_GRAMMAR] = compile_grammar(parts[_GRAMMAR])
    return Ticket(name, kind(**parts))


@dataclass(frozen=True, slots=True)
class Failure:
    """A `SequenceFailed` on its way: its message, for the caller, and its origin, for logs."""

    message: str
    origin: str


@dataclass(slots=True)
class StepReport:
    """One step of a worker.

    Attributes:
        started: tickets that had their first place in a step, with the prompt tokens found in the cache.
        outcomes: new tokens, or failures, by ticket.
        readings: of texts that were read to their end, the log-probabilities of their tokens.
        rows: computed, by kind.
        candidates: of each block whose first token was probed.
        seconds: of the step, by part.
    """

    started: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, Delta | Failure] = field(default_factory=dict)
    readings: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROW_KINDS, 0))
    candidates: list[int] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEP_PARTS, 0.0))


class StepMeter:
    """Takes the times of a worker's steps; on a GPU a forward is launched, and awaited in `other`."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._forward = 0.0
        self._spent: dict[str, float] = {}

    def begins(self) -> None:
        self._began = self._last = time.perf_counter()
        self._forward = 0.0

    def forwarded(self) -> None:
        """The step's own forward, or a probe, has run."""
        self._forward += time.perf_counter() - self._last

    def probes(self, paths: Sequence[Sequence[tuple[int, int, tuple[int, ...]]]], report: StepReport) -> None:
        """A probe of these branches of each block is about to run."""
        self._last = time.perf_counter()
        for own in paths:
            depth = len(own[0][2])
            report.rows["probe"] += len(own) * depth
            if depth == 1:
                report.candidates.append(len(own))

    def ends(self, report: StepReport, seconds: dict[str, float]) -> None:
        """The step has ended; `seconds` count from the worker's start, by part."""
        total = time.perf_counter() - self._began
        parts = {part: spent - self._spent.get(part, 0.0) for part, spent in seconds.items()}
        parts["forward"], self._spent = self._forward, seconds
        report.seconds = parts | {"other": max(0.0, total - sum(parts.values()))}
