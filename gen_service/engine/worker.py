"""The engine's thread: takes requests in, runs one pass after another, hands tokens out."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from gen_service.engine.decoder import Computed, Decoder
from gen_service.engine.drain_rate import DrainRate
from gen_service.engine.errors import (
    Draining,
    EngineDied,
    EngineError,
    OutOfTime,
    Overloaded,
    SequenceFailed,
)
from gen_service.engine.ragged import Append, Probe
from gen_service.engine.request import Delta
from gen_service.engine.runner import Runner
from gen_service.engine.scheduler import Pass, Scheduler, Work
from gen_service.engine.sequence import Sequence
from gen_service.engine.step_record import StepRecorder
from gen_service.engine.stream import DeltaStream, Mailbag


@dataclass(slots=True)
class EngineStats:
    """Counters since the start, and how full the engine is now."""

    running: int = 0
    waiting: int = 0
    cached_tokens: int = 0
    passes: int = 0
    rows: int = 0
    completion_tokens: int = 0
    preemptions: int = 0


class Worker:
    """Owns the model. `submit`, `cancel` and `stop` are for other threads, the rest runs in its own."""

    def __init__(
        self, runner: Runner, scheduler: Scheduler[Sequence], decoder: Decoder, *, max_requests: int
    ) -> None:
        self.stats = EngineStats()
        self._runner = runner
        self._scheduler = scheduler
        self._decoder = decoder
        self._max_requests = max_requests
        self._wake = threading.Condition()
        self._inbox: list[tuple[Sequence, DeltaStream]] = []
        self._streams: dict[Sequence, DeltaStream] = {}
        self._mail = Mailbag()
        self.died = False
        self._accepting = False
        self._halt = False
        self._rate = DrainRate()
        self.recorder: StepRecorder | None = None
        self._thread = threading.Thread(target=self._run, name="ttmark-engine", daemon=True)

    def start(self) -> None:
        self._accepting = True
        self._thread.start()

    @property
    def running(self) -> int:
        """Completions that have a place in the steps."""
        return len(self._scheduler.running)

    @property
    def waiting(self) -> int:
        """Completions that have none yet, those included that the thread has not looked at."""
        return max(0, len(self._inbox) + len(self._streams) - self.running)

    @property
    def accepting(self) -> bool:
        return self._accepting and self._thread.is_alive()

    def check_queue(self) -> None:
        """Does nothing while there is a place in the queue.

        Raises:
            Overloaded: as many requests are in hand as may run and wait.
        """
        in_hand = len(self._inbox) + len(self._streams)
        if in_hand >= self._max_requests:
            raise Overloaded(self._rate.seconds_until_free(in_hand))

    def submit(self, sequence: Sequence, stream: DeltaStream) -> None:
        """Queues a sequence.

        Raises:
            Draining: the worker is not started, is stopping or has ended.
            Overloaded: as many requests are in hand as may run and wait.
        """
        with self._wake:
            if not self.accepting:
                raise Draining("the engine takes no new requests")
            self.check_queue()
            self._inbox.append((sequence, stream))
            if self.recorder is not None:
                self.recorder.arrived(sequence)
            self._wake.notify()

    def cancel(self, sequence: Sequence) -> None:
        """Marks a sequence; its rows are free before the pass after the current one."""
        sequence.cancelled = True

    def stop(self, drain_seconds: float) -> None:
        """Refuses new requests, gives those in hand `drain_seconds` to finish, then fails what is left."""
        with self._wake:
            self._accepting = False
        deadline = time.monotonic() + drain_seconds
        while self._thread.is_alive() and time.monotonic() < deadline:
            with self._wake:
                if not self._inbox and not self._streams:
                    break
            time.sleep(0.01)
        with self._wake:
            self._halt = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        end: EngineError = EngineDied("the engine's thread has ended")
        try:
            while self._take_in():
                try:
                    self._turn()
                except Exception as error:  # a fault of the engine itself: its thread must outlive it
                    self._fail(list(self._streams), SequenceFailed.because(error))
                self._mail.send()
            end = Draining("the engine is stopping")
        finally:
            self.died = isinstance(end, EngineDied)
            self._abandon(end)

    def _abandon(self, error: EngineError) -> None:
        """Fails whatever is in hand, so that nobody waits for a thread that is no more."""
        with self._wake:
            self._accepting = False
            self._streams.update(self._inbox)
            self._inbox = []
        for stream in self._streams.values():
            self._mail.add(stream, error)
        self._mail.send()
        for sequence in list(self._streams):
            self._leave(sequence)
        self._update_stats()

    def _turn(self) -> None:
        self._drop_cancelled()
        step = self._scheduler.plan()
        if step.works:
            self._step(step)
        self._update_stats()

    def _take_in(self) -> bool:
        """Waits for something to do; false once the worker is to halt."""
        with self._wake:
            while not (self._inbox or self._streams or self._halt):
                self._wake.wait()
            arrived, self._inbox = self._inbox, []
            for sequence, stream in arrived:
                self._streams[sequence] = stream
                self._scheduler.add(sequence)
            return not self._halt

    def _drop_cancelled(self) -> None:
        now = time.monotonic()
        late = [sequence for sequence in self._streams if sequence.deadline < now]
        for sequence in [sequence for sequence in self._streams if sequence.cancelled]:
            self._leave(sequence)
        self._fail([sequence for sequence in late if not sequence.cancelled], OutOfTime("out of time"))

    def _step(self, step: Pass[Sequence]) -> None:
        started = time.perf_counter()
        for move in step.moves:
            self._runner.move(move.source, move.target, move.length)
        if self.recorder is not None:
            self.recorder.computes(step.works)
        computed = self._compute(step.works)
        forward = time.perf_counter() - started
        reweighted = self._decoder.reweight_seconds
        outcomes = self._decoder.advance(computed)
        for sequence, outcome in outcomes.items():
            if isinstance(outcome, SequenceFailed):
                self._fail([sequence], outcome)
            else:
                self._deliver(sequence, outcome)
        if self.recorder is not None:
            self.recorder.stepped(
                step.works,
                self._scheduler.preemptions,
                forward=forward,
                reweight=self._decoder.reweight_seconds - reweighted,
                total=time.perf_counter() - started,
            )

    def _compute(self, works: list[Work[Sequence]]) -> list[Computed]:
        """Runs the works in one pass; if that fails, each alone, so that only the culprit ends."""
        try:
            return self._forward(works)
        except Exception:
            computed: list[Computed] = []
            for work in works:
                try:
                    computed += self._forward([work])
                except Exception as error:
                    self._fail([work.sequence], SequenceFailed.because(error))
            return computed

    def _forward(self, works: list[Work[Sequence]]) -> list[Computed]:
        pieces: list[Append | Probe] = []
        owners: list[Sequence] = []
        for work in works:
            of_work = pieces_of(work)
            pieces += of_work
            owners += [work.sequence] * len(of_work)
        logits = self._runner.forward(pieces)
        for work in works:
            if work.pieces:
                work.sequence.cached = work.pieces[-1].stop
        self.stats.passes += 1
        self.stats.rows += sum(work.rows for work in works)
        return [Computed(owner, rows) for owner, rows in zip(owners, logits, strict=True) if len(rows)]

    def _deliver(self, sequence: Sequence, delta: Delta) -> None:
        self.stats.completion_tokens += len(delta.token_ids)
        stream = self._streams[sequence]
        if delta.finish_reason is not None:
            self._leave(sequence)
        self._mail.add(stream, delta)

    def _fail(self, sequences: Iterable[Sequence], error: EngineError) -> None:
        for sequence in sequences:
            stream = self._streams.get(sequence)
            if stream is not None:
                if isinstance(error, SequenceFailed):
                    log = structlog.get_logger("ttmark.engine")
                    request_id = sequence.request.request_id
                    log.error("completion_failed", request_id=request_id, origin=error.origin)
                self._leave(sequence)
                self._mail.add(stream, error)

    def _leave(self, sequence: Sequence) -> None:
        self._scheduler.remove(sequence)
        del self._streams[sequence]
        if self.recorder is not None:
            self.recorder.left(sequence)
        self._rate.tick()
        if not self._streams:
            self._rate.rest()

    def _update_stats(self) -> None:
        self.stats.running = len(self._scheduler.running)
        self.stats.waiting = len(self._scheduler.waiting)
        self.stats.preemptions = self._scheduler.preemptions
        self.stats.cached_tokens = self._scheduler.reserved_rows


def pieces_of(work: Work[Sequence]) -> list[Append | Probe]:
    """The pieces that a work puts into the pass."""
    sequence = work.sequence
    extent = sequence.extent
    if extent is None:
        raise SequenceFailed("no cache rows")
    if sequence.builder is not None:
        return [Probe(extent.start, len(sequence.tokens), sequence.builder.frontier)]
    return [
        Append(
            base=extent.start,
            position=piece.start,
            tokens=sequence.tokens[piece.start : piece.stop],
            is_chunk=piece.is_chunk,
            wants_logits=piece.stop == len(sequence.tokens),
        )
        for piece in work.pieces
    ]
