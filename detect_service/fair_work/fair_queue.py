"""Shares a few worker threads fairly between tenants.

A task runs in slices: it ends its turn at the first pause after `slice_seconds`, and the tenant that has had
the least of the workers' time goes next (start-time fair queueing; Goyal, Vin and Cheng 1996). However much
one tenant sends, a task of another waits for the end of one slice. Work in the background is in lines of its
own, whose time counts for more: it has the workers while nobody else wants them, and a small share else.
"""

import asyncio
import heapq
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeVar

from ttmark.shared.cpu import usable_cores
from ttmark.shared.watermark.interruption import interruptible


class Abandoned(BaseException):
    """Nobody waits for the result any more: no error, and nobody on the way may take it for one."""


class LineName(NamedTuple):
    """Tasks of one line take turns among themselves, lines among each other."""

    tenant: str
    background: bool


class Task:
    """A computation, its cost and its line; runs on a thread of its own while it has a turn.

    Attributes:
        work: the computation; what it returns hands the answer over.
        tag: tasks of one line take turns in the order of their tags.
        since: when the turn, or the time aside, began.
        has_turn: whether it counts as running.
    """

    def __init__(
        self, turns: "FairQueue", line: LineName, cost: float, work: Callable[[], Callable[[], None]]
    ) -> None:
        self.line = line
        self.cost = cost
        self.work = work
        self.tag = 0.0
        self.arrived = self.since = time.perf_counter()
        self.started = self.has_turn = self.abandoned = False
        self.turn = threading.Event()
        self.context = copy_context()  # of the request: what its log lines say
        self._turns = turns

    def pause(self) -> None:
        """Lets another task go first when this one's turn is over. Raises Abandoned: nobody waits for it."""
        self._turns.let_others_go_first(self)
        self.check()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Others have their turns meanwhile; it counts among its tenant's that run. Raises as `pause`."""
        self._turns.leave(self)
        try:
            yield
        finally:
            self._turns.come_back(self)
        self.check()

    def check(self) -> None:
        if self.abandoned:
            raise Abandoned


class TenantLine:
    """Tasks that wait for a turn, and how much of the workers' time the tenant has had.

    Within a tenant a short task overtakes a long one, but never for longer than the long one takes itself:
    tasks go in the order in which they would end if all of them ran at once (weighted fair queueing; Demers,
    Keshav and Shenker 1989).

    Attributes:
        clock: seconds of workers that the line has had, each counted as 1 / `share`; the line with the fewest
            goes next.
        busy: tasks that run, with a turn or aside.
    """

    def __init__(self, clock: float, share: float) -> None:
        self.clock = clock
        self._share = share
        self.tasks = 0
        self.busy = 0
        self.cost = 0.0
        self._done = 0.0
        self._waiting: list[tuple[float, int, Task]] = []
        self._numbers = count()

    def charge(self, seconds: float) -> None:
        self.clock += seconds / self._share

    def enter(self, task: Task) -> None:
        self.tasks += 1
        self.cost += task.cost
        task.tag = self._done + task.cost
        self.wait(task)

    def wait(self, task: Task) -> None:
        heapq.heappush(self._waiting, (task.tag, next(self._numbers), task))

    def next(self) -> Task:
        """Takes the task out of line whose turn is next, where one `has_waiting`."""
        return heapq.heappop(self._waiting)[2]

    @property
    def has_waiting(self) -> bool:
        while self._waiting and self._waiting[0][2].abandoned:
            heapq.heappop(self._waiting)
        return bool(self._waiting)

    def forget(self, task: Task) -> None:
        self.tasks -= 1
        self.cost -= task.cost
        self._done += task.cost


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """Limits on the work that is in hand.

    Attributes:
        workers: threads that work at the same time; None: as many as there are cores, without one for the
            event loop.
        queued_requests: of one tenant, running and waiting.
    """

    workers: int | None = None
    queued_requests: int = 64

    @property
    def threads(self) -> int:
        return self.workers or max(1, usable_cores() - 1)


T = TypeVar("T")
# Of background lines, where a line of requests has 1.
_BACKGROUND_SHARE = 0.1


class QueueFull(Exception):
    """The tenant has as many tasks waiting as it may."""


class FairQueue:
    """Runs tasks on threads, `workers` of them at a time.

    Args:
        most_jobs: of one tenant, running and waiting.
        started: told on any thread of a task's first turn, after so many seconds of waiting.
        abandoned: told on any thread that a task was given up.
        slice_seconds: how long a turn takes while others wait.
    """

    def __init__(
        self,
        *,
        workers: int,
        most_jobs: int,
        started: Callable[[float], None],
        abandoned: Callable[[], None],
        slice_seconds: float = 0.005,
    ) -> None:
        self._workers = self._free = workers
        self._most_jobs = most_jobs
        self._started, self._abandoned = started, abandoned
        self._slice_seconds = slice_seconds
        self._lines: dict[LineName, TenantLine] = {}
        self._lock = threading.Lock()
        # A task that has begun keeps its thread between turns.
        self._threads = ThreadPoolExecutor(max_workers=4096, thread_name_prefix="work")

    @property
    def depth(self) -> int:
        """Tasks in hand, running and waiting."""
        with self._lock:
            return sum(line.tasks for line in self._lines.values())

    async def run(self, tenant: str, cost: float, work: Callable[[], T], *, background: bool = False) -> T:
        """The result of `work`, or what it raises.

        When the caller is cancelled, so is the work: at once while it waits, else at its next pause.

        Raises:
            QueueFull: the tenant has `most_jobs` in hand, of either sort.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def hand_over(set_answer: Callable[[], None]) -> None:
            def unless_cancelled() -> None:
                if not answer.done():
                    set_answer()

            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(unless_cancelled)

        def answering() -> Callable[[], None]:
            try:
                result = work()
            except Abandoned:
                raise
            except BaseException as error:
                failure = error
                return lambda: hand_over(lambda: answer.set_exception(failure))
            return lambda: hand_over(lambda: answer.set_result(result))

        task = Task(self, LineName(tenant, background), cost, answering)
        self._enter(task)
        try:
            return await answer
        except asyncio.CancelledError:
            self._give_up(task)
            raise

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def let_others_go_first(self, task: Task) -> None:
        """Ends the task's turn if its time is up and somebody waits."""
        if time.perf_counter() - task.since < self._slice_seconds:
            return
        with self._lock:
            self._end_turn(task)
            self._lines[task.line].busy -= 1
            self._line_up(task)
        task.turn.wait()

    def leave(self, task: Task) -> None:
        """Ends the task's turn; it goes on in the place of another task of its tenant."""
        with self._lock:
            self._end_turn(task)
            self._give_turns()

    def come_back(self, task: Task) -> None:
        """Waits for a turn after time aside."""
        with self._lock:
            line = self._lines[task.line]
            line.charge(time.perf_counter() - task.since)
            line.busy -= 1
            self._line_up(task)
        task.turn.wait()

    def _enter(self, task: Task) -> None:
        with self._lock:
            line = self._lines.get(task.line)
            if line is None:
                # As far as the one that has had the least: who comes now has no claim to time gone by.
                clock = min((other.clock for other in self._lines.values()), default=0.0)
                share = _BACKGROUND_SHARE if task.line.background else 1.0
                line = self._lines[task.line] = TenantLine(clock, share)
            if line.tasks >= self._most_jobs:
                raise QueueFull
            line.enter(task)
            self._give_turns()

    def _give_up(self, task: Task) -> None:
        with self._lock:
            task.abandoned = True
            self._abandoned()
            if not task.started:
                self._forget(task)
            elif not task.has_turn:
                task.turn.set()  # ends on its thread, without a turn

    def _run(self, task: Task) -> None:
        self._started(time.perf_counter() - task.arrived)
        answer: Callable[[], None] | None = None
        try:
            task.check()
            with interruptible(task):
                answer = task.work()
        except Abandoned:
            pass
        finally:
            with self._lock:
                if task.has_turn:
                    self._end_turn(task)
                    self._lines[task.line].busy -= 1
                self._forget(task)
                self._give_turns()
        # After the task has left its place: who sends the next request upon an answer finds it free.
        if answer is not None:
            answer()

    # What follows is called with the lock held.

    def _line_up(self, task: Task) -> None:
        task.turn.clear()
        self._lines[task.line].wait(task)
        self._give_turns()
        if task.abandoned:
            task.turn.set()

    def _end_turn(self, task: Task) -> None:
        now = time.perf_counter()
        self._lines[task.line].charge(now - task.since)
        task.since = now
        task.has_turn = False
        self._free += 1

    def _give_turns(self) -> None:
        while self._free:
            ready = [line for line in self._lines.values() if line.busy < self._workers and line.has_waiting]
            if not ready:
                return
            line = min(ready, key=lambda line: line.clock)
            task = line.next()
            self._free -= 1
            line.busy += 1
            task.has_turn = True
            task.since = time.perf_counter()
            if task.started:
                task.turn.set()
            else:
                task.started = True
                self._threads.submit(task.context.run, self._run, task)

    def _forget(self, task: Task) -> None:
        line = self._lines[task.line]
        line.forget(task)
        if not line.tasks:
            del self._lines[task.line]
