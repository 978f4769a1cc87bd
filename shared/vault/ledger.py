"""What this process has seen of each record: the memory against which a store's past is noticed."""

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

    def check(self, kind: str, record_id: str, envelope: Envelope | None) -> None:
        """Accepts and remembers the record (None: it is not there).

        Raises:
            RecordRolledBack: a later or a different version of it was there before.
        """
        seen = self._seen.get((kind, record_id))
        if envelope is None:
            if seen is not None:
                raise RecordRolledBack(
                    f"{kind} {record_id} was in the store at epoch {seen.epoch} and is gone"
                )
            return
        if seen is not None:
            self._check_descent(f"{kind} {record_id}", seen, envelope)
        self._seen[kind, record_id] = Sighting(envelope.epoch, envelope.digest)

    def known(self, kind: str) -> set[str]:
        """Ids of the records of a kind that were seen."""
        return {record_id for seen_kind, record_id in self._seen if seen_kind == kind}

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
