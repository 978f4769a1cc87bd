"""What a backend has to do: keep opaque records and change them only from the revision they are at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as it lies in the store; `revision` starts at 1 and grows by one with each change."""

    revision: int
    payload: bytes


class RecordStore(Protocol):
    """Records by kind and id. A store knows neither keys nor tokens, and never sees a secret in the clear.

    Every method raises StoreUnavailable with one clear line when the store does not do its part in time.
    """

    async def get(self, kind: str, record_id: str) -> Stored | None:
        """The record, or None."""

    async def scan(self, kind: str) -> list[tuple[str, Stored]]:
        """All records of a kind at one moment, ordered by id."""

    async def put(self, kind: str, record_id: str, payload: bytes, *, expected_revision: int) -> int:
        """Writes the record if it is at `expected_revision` (0: it must not exist) and gives the new one.

        When it returns, the change has reached the disk as far as the store can promise it. After
        StoreUnavailable the change may or may not have taken effect; repeating the same call is safe.

        Raises:
            RevisionConflict: the record is at another revision.
        """

    async def add(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """Adds to lasting counters, which start at 0, and gives their sums.

        After StoreUnavailable an amount may have been added or not; one that is added again counts twice.
        """

    async def counts(self) -> dict[str, int]:
        """The lasting counters."""

    async def watch(self, changed: Callable[[str], None]) -> None:
        """Calls `changed` with the kind soon after a record of it changed; runs until it is cancelled.

        Announcements are a hint: one may come late or not at all, so records have to be read from
        time to time all the same.
        """

    async def ping(self) -> None:
        """Returns when the store answers."""

    async def close(self) -> None:
        """Gives up connections and files; the store cannot be used afterwards."""
