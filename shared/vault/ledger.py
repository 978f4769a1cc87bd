"""What this process has seen of each record: the memory against which a store's past is noticed."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import orjson

from ttmark.shared.vault.envelope import Envelope
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError, RecordRolledBack
from ttmark.shared.whole_file import write_whole


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


def ledger_path(folder: Path, store_url: str) -> Path:
    """Where a store's ledger lies in `folder`: each address has its own, whatever logs in there."""
    scheme, _, rest = store_url.partition("://")
    location = rest.partition("?")[0]
    authority, _, path = location.partition("/")
    if scheme == "sqlite":
        address = str(Path(unquote(path)).resolve())
    else:
        address = f"{authority.rpartition('@')[2]}/{path}"
    return folder / f"ledger-{hashlib.blake2b(address.encode(), digest_size=8).hexdigest()}.json"


class LedgerFile(Ledger):
    """Sightings in a JSON file of mode 0600, which several processes on the machine may share.

    Removing the file accepts the store as it is. While it cannot be written, this process remembers what it
    sees and tries again at each `save`: refusing records would not make the next process know of them.

    Args:
        tell: hears, in one line, that the file cannot be written, once until it can be again.

    Raises:
        KeyStoreError: the file is there and cannot be read.
    """

    def __init__(self, path: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._path = path
        self._tell = tell
        self._unsaved: set[tuple[str, str]] = set()
        self._failing = False
        self._read()

    @property
    def unsaved(self) -> int:
        return len(self._unsaved)

    def check(self, kind: str, record_id: str, envelope: Envelope | None, before: Sighting | None) -> None:
        latest = self.sighting(kind, record_id)
        try:
            super().check(kind, record_id, envelope, before)
        except RecordRolledBack as error:
            raise RecordRolledBack(
                f"{error}; to accept the store as it is, remove {self._path} and start again"
            ) from error
        if self.sighting(kind, record_id) != latest:
            self._unsaved.add((kind, record_id))

    def save(self) -> None:
        """Merges what was seen into the file and brings it to the disk, or says that it cannot be."""
        if not self._unsaved:
            return
        try:
            with self._locked():
                self._read()
                rows = [[*name, seen.epoch, seen.digest] for name, seen in sorted(self._seen.items())]
                write_whole(self._path, orjson.dumps(rows))
        except (OSError, KeyStoreError) as error:
            if not self._failing:
                reason = error.strerror if isinstance(error, OSError) else error
                self._tell(
                    f"cannot write the ledger {self._path}: {reason}; what was seen of the key store is "
                    "forgotten when this process ends: make room, or name another file in TTMARK_LEDGER_FILE"
                )
            self._failing = True
        else:
            self._unsaved.clear()
            self._failing = False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = os.open(self._path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _read(self) -> None:
        try:
            rows = orjson.loads(self._path.read_bytes())
            stored = {(kind, record_id): Sighting(epoch, digest) for kind, record_id, epoch, digest in rows}
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError) as error:
            raise KeyStoreError(f"the ledger {self._path} cannot be read; restore or remove it") from error
        for name, seen in stored.items():
            mine = self._seen.get(name)
            if mine is None or mine.epoch < seen.epoch:
                self._seen[name] = seen
