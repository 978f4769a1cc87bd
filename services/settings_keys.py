"""Where keys and tokens are kept and what opens them (`TTMARK_STORE_URL`, `TTMARK_KEK`, also from files)."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.runtime import StartupError
from shared.keys import (
    Counters,
    KeyEncryptionKey,
    KeyStoreError,
    Ledger,
    LedgerFile,
    RecordStore,
    open_counters,
    open_store,
)


class KeyStoreSettings(BaseSettings):
    """The key store of both services and of the command line."""

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

    ledger_file: Path | None = Field(
        default=None,
        description="File that remembers what was seen of each record, so that a cold start notices a store "
        "that went back in time.",
    )
    audit_file: Path | None = Field(
        default=None, description="File to which the command line adds a line for each change."
    )

    def open_ledger(self) -> Ledger:
        """The ledger file, or a ledger that lives as long as the process.

        Raises:
            StartupError: the file cannot be read.
        """
        try:
            return Ledger() if self.ledger_file is None else LedgerFile(self.ledger_file)
        except KeyStoreError as error:
            raise StartupError(str(error)) from error

    def open_counters(self) -> Counters:
        """Counters for rate limits, beside the store.

        Raises:
            StartupError: the URL names no store that there is.
        """
        try:
            return open_counters(self._url())
        except ValueError as error:
            raise StartupError(str(error)) from error

    def open_store(self) -> RecordStore:
        """The store, not yet connected.

        Raises:
            StartupError: the URL names no store that there is.
        """
        try:
            return open_store(self._url())
        except ValueError as error:
            raise StartupError(str(error)) from error

    def load_kek(self) -> KeyEncryptionKey:
        """The key-encryption key.

        Raises:
            StartupError: there is none, or it is malformed.
        """
        if self.kek is not None:
            text, source = self.kek.get_secret_value(), "TTMARK_KEK"
        else:
            text, source = _read(self.kek_file, "the key-encryption key"), str(self.kek_file)
        try:
            return KeyEncryptionKey.from_text(text)
        except ValueError as error:
            raise StartupError(f"{source}: {error}") from error

    def _url(self) -> str:
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
