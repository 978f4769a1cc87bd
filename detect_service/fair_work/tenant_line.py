"""The jobs of one tenant that stand in one line."""

import heapq
from itertools import count

from ttmark.detect_service.fair_work.job import Job


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
