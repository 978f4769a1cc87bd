"""Which sequence computes what in the next pass. Rows and tokens are numbers here, not tensors."""

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from gen_service.engine.extents import Extent, ExtentAllocator
from gen_service.engine.piece import Piece

_GROWTH_TOKENS = 256


class Job(Protocol):
    """What the scheduler knows of a sequence."""

    extent: Extent | None
    cached: int

    @property
    def token_count(self) -> int:
        """Tokens so far."""

    @property
    def token_limit(self) -> int:
        """Tokens that there will be at most."""

    @property
    def probe_rows(self) -> int:
        """Rows that the open branches of its block need; 0 if it has tokens to cache instead."""

    def pending_pieces(self, chunk: int, limit: int) -> list[Piece]:
        """The next tokens to cache."""

    def forget_cache(self) -> None:
        """Its rows are gone: it starts again from its tokens."""


J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True)
class Work(Generic[J]):
    """What one sequence computes in a pass: pieces to cache, or, without pieces, the probes of its block."""

    sequence: J
    pieces: tuple[Piece, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Move:
    """Cache rows to copy before the pass, in the order of the list."""

    source: int
    target: int
    length: int


@dataclass(slots=True)
class Pass(Generic[J]):
    """Everything that one forward pass does."""

    works: list[Work[J]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)


class Scheduler(Generic[J]):
    """Continuous batching with preemption by recomputation.

    Rows of a pass are limited; who was passed over goes first the next time. When the cache is full the
    youngest sequence gives its rows up and waits at the head of the queue; the oldest always gets on.

    Args:
        growth_tokens: cache rows that a sequence gets beyond its tokens when it is admitted.
    """

    def __init__(
        self,
        allocator: ExtentAllocator,
        *,
        max_sequences: int,
        step_rows: int,
        prefill_chunk: int,
        growth_tokens: int = _GROWTH_TOKENS,
    ) -> None:
        self.waiting: deque[J] = deque()
        self.running: list[J] = []
        self.preemptions = 0
        self._allocator = allocator
        self._max_sequences = max_sequences
        self._step_rows = step_rows
        self._prefill_chunk = prefill_chunk
        self._growth_tokens = growth_tokens
        self._age: dict[J, int] = {}
        self._arrivals = 0

    @property
    def reserved_rows(self) -> int:
        """Cache rows that sequences hold."""
        return self._allocator.capacity - self._allocator.free_rows

    def add(self, sequence: J) -> None:
        """Queues a sequence behind the others."""
        self._age[sequence] = self._arrivals
        self._arrivals += 1
        self.waiting.append(sequence)

    def remove(self, sequence: J) -> None:
        """Takes a sequence out, wherever it is, and frees its rows."""
        if self._age.pop(sequence, None) is None:
            return
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self._free(sequence)

    def preempt(self, sequence: J) -> None:
        """Frees a running sequence's rows; it is computed again, to the same result, when there is room."""
        self.running.remove(sequence)
        self._free(sequence)
        self.preemptions += 1
        older = [other for other in self.waiting if self._age[other] < self._age[sequence]]
        self.waiting.insert(len(older), sequence)

    def plan(self) -> Pass[J]:
        """The next pass; without works only if nothing is running."""
        self._admit()
        step: Pass[J] = Pass()
        rows = 0
        passed_over: list[J] = []
        for sequence in list(self.running):
            if sequence not in self.running:
                continue
            work = self._next_work(sequence)
            if step.works and rows + work.rows > self._step_rows:
                passed_over.append(sequence)
            elif self._make_room(work, step):
                step.works.append(work)
                rows += work.rows
        served = [sequence for sequence in self.running if sequence not in passed_over]
        self.running = [sequence for sequence in passed_over if sequence in self.running] + served
        return step

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self._max_sequences:
            sequence = self.waiting[0]
            wanted = min(sequence.token_limit, sequence.token_count + self._growth_tokens)
            extent = self._allocator.take(wanted)
            if extent is None:
                return
            sequence.extent = extent
            self.running.append(self.waiting.popleft())

    def _next_work(self, sequence: J) -> Work[J]:
        if sequence.probe_rows:
            return Work(sequence, (), sequence.probe_rows)
        pieces = tuple(sequence.pending_pieces(self._prefill_chunk, self._step_rows))
        return Work(sequence, pieces, pieces[-1].stop - pieces[0].start)

    def _make_room(self, work: Work[J], step: Pass[J]) -> bool:
        """Makes the extent hold what the work caches; false if the sequence itself had to yield."""
        sequence = work.sequence
        needed = work.pieces[-1].stop if work.pieces else 0
        while sequence.extent is not None and sequence.extent.length < needed:
            if self._grow(sequence, needed, step):
                break
            victim = max(self.running, key=lambda other: self._age[other])
            step.works = [planned for planned in step.works if planned.sequence is not victim]
            self.preempt(victim)
        return sequence.extent is not None

    def _grow(self, sequence: J, needed: int, step: Pass[J]) -> bool:
        extent = sequence.extent
        if extent is None:
            return False
        wanted = min(sequence.token_limit, max(needed, 2 * extent.length))
        for length in (wanted, needed):
            grown = self._allocator.extend(extent, length)
            if grown is None:
                grown = self._allocator.take(length)
                if grown is None:
                    continue
                step.moves.append(Move(extent.start, grown.start, sequence.cached))
                self._allocator.give_back(extent)
            sequence.extent = grown
            return True
        return False

    def _free(self, sequence: J) -> None:
        extent: Extent | None = sequence.extent
        if extent is not None:
            self._allocator.give_back(extent)
        sequence.forget_cache()
