"""Where keys and tokens are kept and what opens them (`TTMARK_STORE_URL`, `TTMARK_KEK`, also from files)."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from ttmark.services.runtime import StartupError, no_start_after
from ttmark.services.state_folder import STATE_FOLDER, STATE_MEANING
from ttmark.shared.audit.chain import Chain
from ttmark.shared.audit.heads import Heads
from ttmark.shared.audit.trail import AuditTrail
from ttmark.shared.limits.counters import Counters, open_counters
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import KeyStoreError
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.ledger_file import LedgerFile, ledger_path
from ttmark.shared.vault.open_store import open_store
from ttmark.shared.vault.store import RecordStore


class KeyStoreSettings(BaseSettings):
    """The key store of both services and of the command line.

    Every method raises StartupError where what it needs is missing or not usable.
    """

    model_config = SettingsConfigDict(env_prefix="TTMARK_", extra="ignore", frozen=True)

    store_url: SecretStr = Field(
        default=SecretStr("sqlite:///./.ttmark/keys.db"),
        description="Key store: sqlite:///path, redis://... or rediss://...",
    )
    store_url_file: Path | None = Field(
        default=None, description="File with the key store's URL, in place of TTMARK_STORE_URL."
    )
    kek: SecretStr | None = Field(
        default=None, description="Key-encryption key: 64 hexadecimal digits; further lines are older keys."
    )
    kek_file: Path = Field(
        default=Path(".ttmark/kek"), description="File with the key-encryption key, unless TTMARK_KEK is set."
    )

    state: Path = Field(default=STATE_FOLDER, description=STATE_MEANING)
    ledger_file: Path | None = Field(
        default=None,
        description="File that remembers what was seen of each record, so that a cold start notices a store "
        "that went back in time. Left out: a file for each store in the state folder; empty: none.",
    )
    audit_folder: Path | None = Field(
        default=None,
        description="Folder in which services and commands keep the audit trail, beside their logs; should "
        "outlive them. Left out: services write it to their logs alone, commands not at all.",
    )
    audit_keep_days: float = Field(
        default=365.0, ge=0, description="Days after which a part of the audit trail is removed; 0: never."
    )

    @model_validator(mode="after")
    def _refuse_former_audit_file(self) -> Self:
        """Who still names a file in place of a folder believes that a trail is kept."""
        if self.audit_folder is None and os.environ.get("TTMARK_AUDIT_FILE"):
            raise StartupError("TTMARK_AUDIT_FILE is not read any more: name a folder in TTMARK_AUDIT_FOLDER")
        return self

    def open_ledger(self) -> Ledger:
        """The ledger in its file, or one that lives as long as the process where the file's name is empty."""
        if self.ledger_file == Path():
            return Ledger()
        with no_start_after(KeyStoreError):
            return LedgerFile(self.ledger_file or ledger_path(self.state, self.url()))

    def open_trail(self, writer: str, store: RecordStore, kek: KeyEncryptionKey) -> AuditTrail | None:
        """The audit trail in its folder, as continued by `writer`; None where there is to be none."""
        if self.audit_folder is None:
            return None
        try:
            chain = Chain(self.audit_folder, writer)
        except OSError as error:
            reason = f"{self.audit_folder} ({error.strerror})"
            raise StartupError(f"cannot write the audit trail to {reason}") from error
        keep = timedelta(days=self.audit_keep_days) if self.audit_keep_days else None
        return AuditTrail(chain, Heads(store, kek), keep=keep)

    def open_counters(self) -> Counters:
        """Counters for rate limits, beside the store."""
        with no_start_after(ValueError):
            return open_counters(self.url())

    def open_store(self) -> RecordStore:
        """The store, not yet connected."""
        with no_start_after(ValueError):
            return open_store(self.url())

    def load_kek(self) -> KeyEncryptionKey:
        """The key-encryption key, with the older ones that still open what they wrapped."""
        if self.kek is not None:
            text, source = self.kek.get_secret_value(), "TTMARK_KEK"
        else:
            text, source = _read(self.kek_file, "the key-encryption key"), str(self.kek_file)
        try:
            return KeyEncryptionKey.from_text(text)
        except ValueError as error:
            raise StartupError(f"{source}: {error}") from error

    def url(self) -> str:
        """The store's URL, which may hold a password."""
        if self.store_url_file is not None:
            return _read(self.store_url_file, "the key store's URL")
        return self.store_url.get_secret_value()


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise StartupError(
            f"cannot read {what} from {path} ({reason}); `make up` or `openssl rand -hex 32` makes a key"
        ) from error
