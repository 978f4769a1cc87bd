"""What this process has seen of each record: the memory against which a store's past is noticed."""

from collections.abc import Mapping
from dataclasses import dataclass

from ttmark.shared.vault.envelope import Envelope
from ttmark.shared.vault.key_store_errors import RecordRolledBack


@dataclass(frozen=True, slots=True)
class Sighting:
    """The latest version of a record that was seen."""

    epoch: int
    digest: str


class Ledger:
    """Remembers the latest epoch of each record and refuses one that is older or of another descent."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], Sighting] = {}

    @property
    def unsaved(self) -> int:
        """Records whose latest version is not kept beyond the process, because it cannot be."""
        return 0

    def sighting(self, kind: str, record_id: str) -> Sighting | None:
        """The latest version that was seen of a record; to be taken before the store is asked for it."""
        return self._seen.get((kind, record_id))

    def sightings(self, kind: str) -> Mapping[str, Sighting]:
        """The same of all records of a kind, by id."""
        return {record_id: seen for (of_kind, record_id), seen in self._seen.items() if of_kind == kind}

    def check(self, kind: str, record_id: str, envelope: Envelope | None, before: Sighting | None) -> None:
        """Accepts and remembers the record (None: it is not there).

        What others saw while the store answered is no reason to refuse its answer, which may be older.

        Args:
            before: its sighting when the store was asked.

        Raises:
            RecordRolledBack: a later or a different version of it was there before.
        """
        name = f"{kind} {record_id}"
        if envelope is None:
            if before is not None:
                raise RecordRolledBack(f"{name} was in the store at epoch {before.epoch} and is gone")
            return
        latest = self.sighting(kind, record_id)
        for seen in (before, latest):
            if seen is not None and (seen is before or seen.epoch <= envelope.epoch):
                self._check_descent(name, seen, envelope)
        if latest is None or latest.epoch < envelope.epoch:
            self._seen[kind, record_id] = Sighting(envelope.epoch, envelope.digest)

    def any_record(self) -> tuple[str, str] | None:
        """Kind and id of a record that was seen, the same each time; None where none was."""
        return next(iter(self._seen), None)

    def save(self) -> None:
        """Keeps what was seen beyond the process, in ledgers that can."""

    @staticmethod
    def _check_descent(name: str, seen: Sighting, envelope: Envelope) -> None:
        if envelope.epoch < seen.epoch:
            raise RecordRolledBack(
                f"{name} went back in time: epoch {envelope.epoch} in the store, {seen.epoch} seen before"
            )
        history = (*envelope.trail, envelope.digest)
        age = envelope.epoch - seen.epoch
        if age < len(history) and history[-1 - age] != seen.digest:
            raise RecordRolledBack(
                f"{name} has another history than the one seen before at epoch {seen.epoch}"
            )
