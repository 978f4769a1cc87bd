"""A ledger that outlives the process, so that a cold start notices a store that went back in time."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import orjson

from ttmark.shared.vault.envelope import Envelope
from ttmark.shared.vault.key_store_errors import KeyStoreError, RecordRolledBack
from ttmark.shared.vault.ledger import Ledger, Sighting


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

    Removing the file accepts the store as it is.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._unsaved = False
        self._read()

    def check(self, kind: str, record_id: str, envelope: Envelope | None) -> None:
        """As in `Ledger`; call `save` afterwards."""
        before = self._seen.get((kind, record_id))
        try:
            super().check(kind, record_id, envelope)
        except RecordRolledBack as error:
            raise RecordRolledBack(
                f"{error}; to accept the store as it is, remove {self._path} and start again"
            ) from error
        self._unsaved |= self._seen.get((kind, record_id)) != before

    def save(self) -> None:
        """Merges what was seen into the file and flushes it to the disk.

        Raises:
            KeyStoreError: the file cannot be written.
        """
        if not self._unsaved:
            return
        try:
            with self._locked():
                self._read()
                rows = [[*name, seen.epoch, seen.digest] for name, seen in sorted(self._seen.items())]
                self._replace(orjson.dumps(rows))
        except OSError as error:
            raise KeyStoreError(
                f"cannot write the ledger {self._path}: {error.strerror}; name a file that can be written in "
                "TTMARK_LEDGER_FILE"
            ) from error
        self._unsaved = False

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

    def _replace(self, content: bytes) -> None:
        part = self._path.with_suffix(".part")
        descriptor = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(self._path)
