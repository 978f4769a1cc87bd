"""The engine's thread: takes requests from others, and makes one step after another."""

import threading
import time
from collections import Counter

from ttmark.gen_service.decoding.errors import SequenceFailed
from ttmark.gen_service.engine.cached_sequence import CachedSequence
from ttmark.gen_service.engine.errors import Draining, EngineDied, EngineError
from ttmark.gen_service.engine.places import check_place, reading_places
from ttmark.gen_service.engine.step import Arrivals, Stepper
from ttmark.gen_service.engine.stream import Mailbox
from ttmark.gen_service.engine.text_reading import TextReading


class Worker:
    """Owns the thread. `submit`, `cancel` and `stop` are for other threads, the rest runs in its own."""

    def __init__(self, stepper: Stepper, *, max_requests: int, reading_share: float) -> None:
        self.died = False
        self._stepper = stepper
        self._max_requests = max_requests
        self._max_readings = reading_places(max_requests, reading_share)
        self._wake = threading.Condition()
        self._inbox: Arrivals = []
        self._accepting = False
        self._halt = False
        self._thread = threading.Thread(target=self._run, name="ttmark-engine", daemon=True)

    def start(self) -> None:
        self._accepting = True
        self._thread.start()

    @property
    def accepting(self) -> bool:
        return self._accepting and self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Completions without a place in the steps, those included that the thread has not looked at."""
        return max(0, self._in_hand - self._stepper.running)

    @property
    def _in_hand(self) -> int:
        return len(self._inbox) + len(self._stepper.mailboxes)

    def check_queue(self, tenant: str) -> None:
        """Does nothing while there is a place in the queue for something to be written.

        Raises:
            Overloaded: see `check_place`.
        """
        check_place(tenant, self._held(reading=False), self._max_requests, self._stepper.drain_rate)

    def _held(self, *, reading: bool) -> Counter[str]:
        arrivals = [sequence for sequence, _ in list(self._inbox)]
        everything = (*arrivals, *list(self._stepper.mailboxes))
        return Counter(each.tenant for each in everything if isinstance(each, TextReading) is reading)

    def submit(self, sequence: CachedSequence, mailbox: Mailbox) -> None:
        """Queues a sequence.

        Raises:
            Draining: the worker is not started, is stopping or has ended.
            Overloaded: see `check_place`; readings have places of their own.
        """
        with self._wake:
            if not self.accepting:
                raise Draining("the engine takes no new requests")
            if isinstance(sequence, TextReading):
                held, drain_rate = self._held(reading=True), self._stepper.drain_rate
                check_place(sequence.tenant, held, self._max_readings, drain_rate)
            else:
                self.check_queue(sequence.tenant)
            self._inbox.append((sequence, mailbox))
            self._stepper.recorder.arrived(sequence)
            self._wake.notify()

    def cancel(self, sequence: CachedSequence) -> None:
        """Marks a sequence; its rows are free before the pass after the current one."""
        sequence.cancelled = True

    def stop(self, drain_seconds: float) -> None:
        """Refuses new requests, gives those in hand `drain_seconds` to finish, then fails what is left."""
        with self._wake:
            self._accepting = False
        deadline = time.monotonic() + drain_seconds
        while self._thread.is_alive() and time.monotonic() < deadline:
            with self._wake:
                if not self._in_hand:
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
            while (arrivals := self._arrivals()) is not None:
                try:
                    self._stepper.step(arrivals)
                except Exception as error:  # a fault of the engine itself: its thread must outlive it
                    self._stepper.fail_all(SequenceFailed.because(error))
            end = Draining("the engine is stopping")
        finally:
            self.died = isinstance(end, EngineDied)
            with self._wake:
                self._accepting = False
                arrivals, self._inbox = self._inbox, []
            self._stepper.abandon(arrivals, end)

    def _arrivals(self) -> Arrivals | None:
        """Waits for something to do, and takes what has come in; None once the worker is to halt."""
        with self._wake:
            while not (self._in_hand or self._halt):
                self._wake.wait()
            if self._halt:
                return None
            arrivals, self._inbox = self._inbox, []
            return arrivals
