"""What work a service takes on."""

from dataclasses import dataclass

from ttmark.shared.processor import usable_cores


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
        """How many workers there are."""
        return self.workers or max(1, usable_cores() - 1)
