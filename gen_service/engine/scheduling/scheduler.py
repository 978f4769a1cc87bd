"""Which sequence computes what in the next pass. Rows and tokens are numbers here, not tensors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Generic, TypeVar

from ttmark.gen_service.engine.scheduling.fair_line import FairLine
from ttmark.gen_service.engine.scheduling.fair_share import ReadingShare, beyond_their_share, next_victim
from ttmark.gen_service.engine.scheduling.kv_cache_rows import CacheRows, Cuts, ExtentAllocator, Move
from ttmark.gen_service.engine.scheduling.reading_line import ReadingLine
from ttmark.gen_service.engine.scheduling.schedulable import Schedulable, Work

_GROWTH_TOKENS = 256

J = TypeVar("J", bound=Schedulable)


@dataclass(slots=True)
class PassPlan(Generic[J]):
    """Everything that one forward pass does."""

    works: dict[J, Work] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)


class Scheduler(FairLine[J]):
    """Continuous batching, fair between tenants, with preemption by recomputation.

    Rows of a pass go to the tenant that was given the fewest so far; within a tenant, who was passed over
    goes first the next time. A sequence that is passed over keeps its cache rows: it is paused. A tenant
    below its share of the places gets one at once, although others hold them all, and if need be the cache
    rows that others hold beyond their share. When the cache is full the youngest sequence of the tenant that
    holds most gives its rows up and waits before those that came later; the oldest of all always gets on.
    Texts that are read stand apart from all this: they have places and rows of a pass by `reading_share`, and
    the first cache rows that are needed are theirs.

    Args:
        growth_tokens: cache rows that a sequence gets beyond its tokens when it is admitted.
        cuts: where a sequence may go on from what earlier ones of its tenant have left in the cache; None:
            nothing is kept.
        reading_share: rows that may be read for each row that is written; of `max_sequences` so many may be
            read at the same time, one at least.

    Attributes:
        waiting: sequences without cache rows, oldest first.
        running: sequences with cache rows, those first that were passed over.
        readings: texts that are read, which are in neither.
        tenants_waiting: tenants of whom the last pass left something out.
    """

    def __init__(
        self,
        allocator: ExtentAllocator,
        *,
        max_sequences: int,
        step_rows: int,
        prefill_chunk: int,
        growth_tokens: int = _GROWTH_TOKENS,
        cuts: Cuts | None = None,
        reading_share: float = 0.2,
    ) -> None:
        super().__init__(max_sequences)
        self.preemptions = 0
        self.tenants_waiting = 0
        self._capacity = allocator.capacity
        self._rows: CacheRows[J] = CacheRows(allocator, cuts)
        self._share = ReadingShare(reading_share)
        places = max(1, int(reading_share * max_sequences))
        self.readings: ReadingLine[J] = ReadingLine(self._rows, self._share, places)
        self._step_rows = step_rows
        self._prefill_chunk = prefill_chunk
        self._growth_tokens = growth_tokens
        self._age: dict[J, int] = {}
        self._arrivals = 0

    @property
    def reserved_rows(self) -> int:
        return self._rows.held

    @property
    def prefix_rows(self) -> int:
        """Cache rows that are kept for sequences to come; they are free for any that needs them."""
        return self._rows.prefix_rows

    @property
    def reused_tokens(self) -> int:
        """Prompt tokens that were found in the cache, since the start."""
        return self._rows.reused_tokens

    def add(self, sequence: J) -> None:
        self._age[sequence] = self._arrivals
        self._arrivals += 1
        self.waiting.append(sequence)

    def remove(self, sequence: J) -> None:
        """Takes a sequence out, wherever it is; its rows are free, or kept for others that begin so."""
        if self._age.pop(sequence, None) is None:
            self.readings.remove(sequence)
            return
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
            self._kept_out.pop(sequence.tenant, None)
        self._free(sequence, comes_back=False)

    def distrust(self, sequence: J) -> None:
        """What is cached of a sequence, or of its tenant's earlier ones, is not used again."""
        sequence.cached = 0
        self._rows.forget_prefixes(sequence.tenant)

    def preempt(self, sequence: J) -> None:
        """Frees a running sequence's rows; it is computed again, to the same result, when there is room."""
        self.running.remove(sequence)
        self._free(sequence, comes_back=True)
        self.preemptions += 1
        older = [other for other in self.waiting if self._age[other] < self._age[sequence]]
        self.waiting.insert(len(older), sequence)

    def plan(self) -> PassPlan[J]:
        """The next pass; without works only if nothing is running."""
        plan: PassPlan[J] = PassPlan(moves=self._rows.moves)
        self._admit()
        writing = bool(self.running or self.waiting)
        if self.readings:
            self.readings.begin_pass(writing=writing)
        rows = 0
        passed_over: list[J] = []
        for sequence in self._everybody_in_turn():
            if sequence.extent is None:
                continue  # it gave its rows up for one that was planned before it
            if len(plan.works) == self._places:
                passed_over.append(sequence)
                continue
            is_read = sequence in self.readings.running
            limit = self.readings.piece(self._step_rows) if is_read else self._step_rows
            work = sequence.next_work(self._prefill_chunk, limit)
            fits = not plan.works or rows + work.rows <= self._step_rows
            if not (self.readings.may_read(work, fits) if is_read else fits):
                passed_over.append(sequence)
            elif self._make_room(sequence, work.cached, plan):
                plan.works[sequence] = work
                rows += work.rows
                self._count(sequence, work.rows)
        self._pay_for_the_pass(plan, rows)
        if self.readings:
            self.readings.end_pass(passed_over)
        self._share.settle(writing=writing, reading=bool(self.readings))
        left_out = [sequence for sequence in passed_over if sequence in self.running]
        self.running = left_out + [sequence for sequence in self.running if sequence not in left_out]
        paused = {sequence.tenant for sequence in left_out}
        self.shares.settle(paused)
        self._rows.moves = []
        self.tenants_waiting = len(paused | {sequence.tenant for sequence in self.waiting})
        return plan

    def _count(self, sequence: J, rows: int) -> None:
        """Counts rows of a pass for whoever they are; negative ones were planned and given up."""
        if sequence in self.readings.running:
            self.readings.count(sequence, rows)
            return
        self._share.write(rows)
        self.shares.serve(sequence.tenant, rows)

    def _pay_for_the_pass(self, plan: PassPlan[J], rows: int) -> None:
        """A pass that held up everybody who writes counts as a full one."""
        if self.running and all(sequence in self.readings.running for sequence in plan.works):
            self._share.read(max(0, self._step_rows - rows))

    def _everybody_in_turn(self) -> Iterator[J]:
        """What is read comes last, for the rows that are left; first once it has earned a whole pass."""
        readings = self.readings.in_turn()
        if self.readings and self.readings.owed(self._step_rows):
            return chain(readings, self.in_turn())
        return chain(self.in_turn(), readings)

    def _take_in(self, sequence: J) -> bool:
        wanted = min(sequence.token_limit, sequence.token_count + self._growth_tokens)
        if not (self._rows.admit(sequence, wanted) or self._admit_at_cost(sequence, wanted)):
            return False
        self.waiting.remove(sequence)
        self.running.append(sequence)
        return True

    def _admit_at_cost(self, sequence: J, wanted: int) -> bool:
        free = self._rows.available + self.readings.held
        victims = beyond_their_share(
            self.running,
            self._age,
            tenant=sequence.tenant,
            wanted=wanted,
            free=free,
            share=self._capacity // self.tenants_in_hand,
        )
        if free < wanted and not victims:
            return False
        while self.readings.give_way() is not None:
            self.preemptions += 1
            if self._rows.admit(sequence, wanted):
                return True
        for victim in victims:
            self.preempt(victim)
            if self._rows.admit(sequence, wanted):
                return True
        return False

    def _make_room(self, sequence: J, needed: int, plan: PassPlan[J]) -> bool:
        """Makes the extent hold `needed` tokens; false if the sequence itself had to yield."""
        while sequence.extent is not None and sequence.extent.length < needed:
            if self._rows.grow(sequence, needed):
                break
            reading = self.readings.give_way()
            if reading is not None:
                self.preemptions += 1
                self.readings.count(reading, -self._given_up(reading, plan))
                continue
            victim = next_victim(self.running, self._age)
            self._count(victim, -self._given_up(victim, plan))
            self.preempt(victim)
        return sequence.extent is not None

    def _given_up(self, victim: J, plan: PassPlan[J]) -> int:
        """Rows of a plan that a sequence does not compute after all."""
        work = plan.works.pop(victim, None)
        return 0 if work is None else work.rows

    def _free(self, sequence: J, *, comes_back: bool) -> None:
        self._rows.release(sequence, comes_back=comes_back)
        sequence.forget_cache()
