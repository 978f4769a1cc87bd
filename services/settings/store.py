"""Where keys and tokens are kept and what opens them (`TTMARK_STORE_URL`, `TTMARK_KEK`, also from files)."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import Folder, ReadableFile, WritableFile, have_folder
from ttmark.services.startup import StartupError, warn
from ttmark.services.state_folder import STATE_FOLDER, STATE_MEANING
from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.ledger import Ledger, LedgerFile, ledger_path
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError
from ttmark.shared.vault.stores.store import RecordStore

NO_LEDGER = Path("none")


def _is_url(value: SecretStr) -> SecretStr:
    check_store_url(value.get_secret_value())
    return value


def _is_kek(value: SecretStr) -> SecretStr:
    KeyEncryptionKey.from_text(value.get_secret_value())
    return value


class KeyStoreSettings(Settings):
    """The key store of both services and of the command line.

    Every method raises StartupError where what it needs is missing or not usable.
    """

    store_url: Annotated[SecretStr, AfterValidator(_is_url)] = Field(
        default=SecretStr("sqlite:///./.ttmark/keys.db"),
        description="Key store: sqlite:///path, or redis[s][+sentinel|+cluster]://...",
    )
    store_url_file: ReadableFile | None = Field(
        default=None, description="File with the key store's URL, in place of TTMARK_STORE_URL."
    )
    kek: Annotated[SecretStr, AfterValidator(_is_kek)] | None = Field(
        default=None, description="Key-encryption key: 64 hexadecimal digits; further lines are older keys."
    )
    kek_file: ReadableFile = Field(
        default=Path(".ttmark/kek"), description="File with the key-encryption key, unless TTMARK_KEK is set."
    )
    state: Folder = Field(default=STATE_FOLDER, description=STATE_MEANING)
    ledger_file: WritableFile | None = Field(
        default=None,
        description="File that remembers each record, against a store that goes back in time. Left out: one "
        "in the state folder; `none`: none.",
    )

    def check(self) -> None:
        """Reads what the settings name, so that a start fails before it loads anything."""
        self.url()
        self.load_kek()
        self.open_ledger()

    def open_ledger(self, *, make: bool = False, tell: Callable[[str], None] = warn) -> Ledger:
        """The ledger in its file, or one that lives as long as the process where none is to be kept.

        Args:
            make: the default state folder where it is missing.
            tell: hears that the file cannot be written.
        """
        if self.ledger_file == NO_LEDGER:
            return Ledger()
        path = self.ledger_file or ledger_path(self.state, self.url())
        _have("TTMARK_LEDGER_FILE", path.parent, make=make)
        try:
            return LedgerFile(path, tell)
        except KeyStoreError as error:
            raise StartupError(f"TTMARK_LEDGER_FILE: {error}") from error

    def open_counters(self) -> Counters:
        return open_counters(self.url())

    def open_store(self, *, make: bool = False) -> RecordStore:
        """The store, not yet connected.

        Args:
            make: the default state folder where it is missing.
        """
        url = self.url()
        if (path := sqlite_path(url)) is not None:
            _have("TTMARK_STORE_URL", path.parent, make=make)
        return open_store(url)

    def load_kek(self) -> KeyEncryptionKey:
        """The key-encryption key, with the older ones that still open what they wrapped."""
        if self.kek is not None:
            return KeyEncryptionKey.from_text(self.kek.get_secret_value())
        text = self.text_of(
            "kek_file", advice="`ttmark up` or `openssl rand -hex 32` makes a key-encryption key"
        )
        try:
            return KeyEncryptionKey.from_text(text)
        except ValueError as error:
            raise StartupError(f"TTMARK_KEK_FILE: {error}") from None

    def url(self) -> str:
        if self.store_url_file is None:
            return self.store_url.get_secret_value()
        url = self.text_of("store_url_file")
        try:
            check_store_url(url)
        except ValueError as error:
            raise StartupError(f"TTMARK_STORE_URL_FILE: {error}") from None
        return url


def check_store_url(url: str) -> None:
    """Does nothing where a URL names a store, and the folder of a file is there.

    Raises:
        ValueError: it does not; the message does not repeat the URL.
    """
    open_store(url)
    if (path := sqlite_path(url)) is not None:
        have_folder(path.parent)


def _have(variable: str, folder: Path, *, make: bool) -> None:
    try:
        if make and folder == STATE_FOLDER and not folder.exists():
            folder.mkdir(mode=0o700)
        have_folder(folder)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StartupError(f"{variable} ({folder} by default): {reason}") from error


def open_store(url: str) -> RecordStore:
    """`sqlite:///relative/path`, `sqlite:////absolute/path`, or what `RedisAddress.parse` reads.

    Nothing is connected to before the first call.

    Raises:
        ValueError: anything else.
    """
    # Imported where they are used: Redis' library takes longer to import than SQLite's to open a store.
    if _is_redis(url):
        from ttmark.shared.vault.stores.redis_client import RedisClient
        from ttmark.shared.vault.stores.redis_connections import RedisAddress
        from ttmark.shared.vault.stores.redis_store import RedisStore

        return RedisStore(RedisClient(RedisAddress.parse(url)))
    from ttmark.shared.vault.stores.sqlite_store import SqliteStore

    path = sqlite_path(url)
    if path is None:
        raise ValueError("the key store is a URL: sqlite:///path, redis://host:port or rediss://host:port")
    return SqliteStore(path)


def open_counters(url: str) -> Counters:
    """Counters that all replicas with this store share; with SQLite, those of the process.

    While Redis is away each replica goes on with counters of its own.

    Raises:
        ValueError: the URL names no store.
    """
    if _is_redis(url):
        from ttmark.shared.limits.redis_counters import FallbackCounters, RedisCounters
        from ttmark.shared.vault.stores.redis_connections import RedisAddress

        return FallbackCounters(RedisCounters(RedisAddress.parse(url)))
    return LocalCounters()


def _is_redis(url: str) -> bool:
    return url.partition("://")[0].partition("+")[0] in ("redis", "rediss")


def sqlite_path(url: str) -> Path | None:
    """The file that a URL names; None where it names none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # whose message repeats what may be a password
        return None
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2:
        return None
    return Path(unquote(parts.path[1:]))
