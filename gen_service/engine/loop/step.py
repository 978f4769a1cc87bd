"""The step of the engine: it takes each completion in hand further by a token, a block or a level of one."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import structlog
import torch

from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.request import Delta, SequenceFailed
from ttmark.gen_service.engine.errors import EngineError, OutOfTime
from ttmark.gen_service.engine.loop.cached_sequence import CachedSequence, TextReading
from ttmark.gen_service.engine.loop.engine_metrics import StepRecorder
from ttmark.gen_service.engine.loop.stream import Failure, Mailbox, Outbox
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.scheduling.fair_share import DrainRate
from ttmark.gen_service.engine.scheduling.schedulable import Work
from ttmark.gen_service.engine.scheduling.scheduler import PassPlan, Scheduler

Arrivals = list[tuple[CachedSequence, Mailbox]]


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Counters since the start, and how full the engine is now.

    Attributes:
        cached_tokens: cache rows that running completions hold.
        prefix_tokens: cache rows that are kept for prompts to come.
        reused_tokens: prompt tokens that were found in the cache.
    """

    running: int
    waiting: int
    waiting_tenants: int
    cached_tokens: int
    prefix_tokens: int
    reused_tokens: int
    passes: int
    rows: int
    preemptions: int


class Stepper:
    """The completions in hand and what takes them further; the engine's thread alone calls it."""

    def __init__(self, runner: Runner, scheduler: Scheduler[CachedSequence], decoder: Decoder) -> None:
        self.mailboxes: dict[CachedSequence, Mailbox] = {}
        self.drain_rate = DrainRate()
        self.recorder = StepRecorder()
        self._runner = runner
        self._scheduler = scheduler
        self._decoder = decoder
        self._outbox = Outbox()
        self._passes = self._rows = 0

    def step(self, arrivals: Arrivals) -> None:
        """Take in, plan, forward, decide, deliver."""
        self._take_in(arrivals)
        plan = self._scheduler.plan()
        logits, failures = self._forward(plan)
        read = self._read(logits)
        tokens = self._decoder.decide(logits)
        self._deliver(failures | read | tokens)

    def _take_in(self, arrivals: Arrivals) -> None:
        for sequence, mailbox in arrivals:
            self.mailboxes[sequence] = mailbox
            line = self._scheduler.readings if isinstance(sequence, TextReading) else self._scheduler
            line.add(sequence)
        now = time.monotonic()
        late = [sequence for sequence in self.mailboxes if sequence.deadline < now]
        for sequence in [sequence for sequence in self.mailboxes if sequence.cancelled]:
            self._leave(sequence)
        self._fail([sequence for sequence in late if not sequence.cancelled], OutOfTime("out of time"))

    def _forward(
        self, plan: PassPlan[CachedSequence]
    ) -> tuple[dict[CachedSequence, torch.Tensor], dict[CachedSequence, Delta | SequenceFailed]]:
        """Logits [paths, vocab] for the blocks of a pass, and the failures of sequences that it failed for.

        If the pass fails, each sequence is computed alone, so that only the culprit ends.
        """
        self.recorder.begins(plan.works)
        for move in plan.moves:
            self._runner.move(move.source, move.target, move.length)
        logits: dict[CachedSequence, torch.Tensor] = {}
        failures: dict[CachedSequence, Delta | SequenceFailed] = {}
        try:
            logits = self._compute(plan.works)
        except Exception:
            for sequence, work in plan.works.items():
                try:
                    logits |= self._compute({sequence: work})
                except Exception as error:
                    failures[sequence] = SequenceFailed.because(error)
        self.recorder.forwarded()
        return logits, failures

    def _compute(self, works: Mapping[CachedSequence, Work]) -> dict[CachedSequence, torch.Tensor]:
        if not works:
            return {}
        pieces: list[Append | Probe] = []
        owners: list[CachedSequence] = []
        for sequence, work in works.items():
            own = sequence.pieces(work.cached)
            pieces += own
            owners += [sequence] * len(own)
        logits = self._runner.forward(pieces)
        for sequence, work in works.items():
            sequence.cached = work.cached
        self._passes += 1
        self._rows += sum(work.rows for work in works.values())
        found: dict[CachedSequence, list[torch.Tensor]] = {}
        for owner, rows in zip(owners, logits, strict=True):
            if len(rows):
                found.setdefault(owner, []).append(rows)
        return {owner: rows[0] if len(rows) == 1 else torch.cat(rows) for owner, rows in found.items()}

    def _read(
        self, logits: dict[CachedSequence, torch.Tensor]
    ) -> dict[CachedSequence, Delta | SequenceFailed]:
        """Hands texts that are read their logits, and takes these out; the endings and the failures."""
        outcomes: dict[CachedSequence, Delta | SequenceFailed] = {}
        for reading in [sequence for sequence in logits if isinstance(sequence, TextReading)]:
            try:
                ending = reading.take(logits.pop(reading))
            except Exception as error:
                outcomes[reading] = SequenceFailed.because(error)
                continue
            if ending is not None:
                outcomes[reading] = ending
        return outcomes

    def _deliver(self, outcomes: Mapping[CachedSequence, Delta | SequenceFailed]) -> None:
        for sequence, outcome in outcomes.items():
            if isinstance(outcome, SequenceFailed):
                self._fail([sequence], outcome)
                continue
            mailbox = self.mailboxes[sequence]
            if outcome.finish_reason is not None:
                self._leave(sequence)
                outcome = replace(outcome, reused_tokens=sequence.reused or 0)
            self._outbox.add(mailbox, outcome)
        scheduler = self._scheduler
        self.recorder.ends(scheduler.preemptions, scheduler.reused_tokens, self._decoder.seconds)
        self._outbox.send()

    def fail_all(self, error: SequenceFailed) -> None:
        self._fail(list(self.mailboxes), error)
        self._outbox.send()

    def abandon(self, arrivals: Arrivals, error: EngineError) -> None:
        """Tells everybody that there will be no further step, before anything else is done."""
        self.mailboxes.update(arrivals)
        for mailbox in self.mailboxes.values():
            self._outbox.add(mailbox, error)
        self._outbox.send()
        for sequence in list(self.mailboxes):
            self._leave(sequence)

    def _fail(self, sequences: Iterable[CachedSequence], error: Failure) -> None:
        for sequence in sequences:
            mailbox = self.mailboxes[sequence]
            if isinstance(error, SequenceFailed):
                log = structlog.get_logger("ttmark.engine")
                log.error("completion_failed", request_id=sequence.request.request_id, origin=error.origin)
                self._scheduler.distrust(sequence)
            self._leave(sequence)
            self._outbox.add(mailbox, error)

    def _leave(self, sequence: CachedSequence) -> None:
        self._scheduler.remove(sequence)
        del self.mailboxes[sequence]
        self.recorder.left(sequence)
        self.drain_rate.tick()
        if not self.mailboxes:
            self.drain_rate.rest()

    @property
    def running(self) -> int:
        return len(self._scheduler.running) + len(self._scheduler.readings.running)

    @property
    def stats(self) -> EngineStats:
        scheduler = self._scheduler
        return EngineStats(
            running=self.running,
            waiting=len(scheduler.waiting) + len(scheduler.readings.waiting),
            waiting_tenants=scheduler.tenants_waiting if self.mailboxes else 0,
            cached_tokens=scheduler.reserved_rows,
            prefix_tokens=scheduler.prefix_rows,
            reused_tokens=scheduler.reused_tokens,
            passes=self._passes,
            rows=self._rows,
            preemptions=scheduler.preemptions,
        )
