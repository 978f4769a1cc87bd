"""One computation in the fair queue."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
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
