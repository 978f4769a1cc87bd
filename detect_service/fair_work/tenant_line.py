"""A tenant's line: computations in the fair queue, and how much of the workers' time they have had."""

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from itertools import count
from typing import NamedTuple, Protocol


class Abandoned(BaseException):
    """Nobody waits for the result any more: no error, and nobody on the way may take it for one."""


class Turns(Protocol):
    """What a job asks for turns: the fair queue."""

    def let_others_go_first(self, job: "Job") -> None:
        """Ends the job's turn if its time is up, and waits for the next one."""

    def leave(self, job: "Job") -> None:
        """Ends the job's turn, although it goes on."""

    def come_back(self, job: "Job") -> None:
        """Waits for the next turn."""


class LineName(NamedTuple):
    """Jobs of one line take turns among themselves, lines among each other."""

    tenant: str
    background: bool


class Job:
    """A computation, its cost and its line; runs on a thread of its own while it has a turn.

    Attributes:
        work: the computation; what it returns hands the answer over.
        tag: jobs of one line take turns in the order of their tags.
        since: when the turn, or the time aside, began.
        has_turn: whether it counts as running.
    """

    def __init__(
        self, turns: Turns, line: LineName, cost: float, work: Callable[[], Callable[[], None]]
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
        """Lets another job go first when this one's turn is over.

        Raises:
            Abandoned: nobody waits for the result.
        """
        self._turns.let_others_go_first(self)
        self.check()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Others have their turns meanwhile; this job still counts among those of its tenant that run.

        Raises:
            Abandoned: nobody waits for the result.
        """
        self._turns.leave(self)
        try:
            yield
        finally:
            self._turns.come_back(self)
        self.check()

    def check(self) -> None:
        """Raises Abandoned when nobody waits for the result."""
        if self.abandoned:
            raise Abandoned


class TenantLine:
    """Jobs that wait for a turn, and how much of the workers' time the tenant has had.

    Within a tenant a short job overtakes a long one, but never for longer than the long one takes itself:
    jobs go in the order in which they would end if all of them ran at once (weighted fair queueing; Demers,
    Keshav and Shenker 1989).

    Attributes:
        clock: seconds of workers that the line has had, each counted as 1 / `share`; the line with the fewest
            goes next.
        jobs: jobs in hand.
        busy: jobs that run, with a turn or aside.
    """

    def __init__(self, clock: float, share: float) -> None:
        self.clock = clock
        self._share = share
        self.jobs = 0
        self.busy = 0
        self.cost = 0.0
        self._done = 0.0
        self._waiting: list[tuple[float, int, Job]] = []
        self._numbers = count()

    def charge(self, seconds: float) -> None:
        """The line has had time of the workers."""
        self.clock += seconds / self._share

    def enter(self, job: Job) -> None:
        """Takes a new job in hand."""
        self.jobs += 1
        self.cost += job.cost
        job.tag = self._done + job.cost
        self.wait(job)

    def wait(self, job: Job) -> None:
        """Puts a job in hand back in line."""
        heapq.heappush(self._waiting, (job.tag, next(self._numbers), job))

    def next(self) -> Job | None:
        """Takes the job out of line whose turn is next; None when none waits."""
        while self._waiting:
            job = heapq.heappop(self._waiting)[2]
            if not job.abandoned:
                return job
        return None

    @property
    def has_waiting(self) -> bool:
        """Whether a job waits for a turn."""
        while self._waiting and self._waiting[0][2].abandoned:
            heapq.heappop(self._waiting)
        return bool(self._waiting)

    def forget(self, job: Job) -> None:
        """A job has ended or was given up."""
        self.jobs -= 1
        self.cost -= job.cost
        self._done += job.cost
