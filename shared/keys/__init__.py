"""Keys, access tokens and the stores that hold them; see `docs/adr/0030-key-records.md`."""

from shared.keys.cache import KeyCache
from shared.keys.derive import derive_prf_key
from shared.keys.errors import (
    ExpiredToken,
    InvalidName,
    InvalidToken,
    InvalidTransition,
    KeyExists,
    KeyNotFound,
    KeyStoreError,
    RecordRolledBack,
    RecordTampered,
    RevisionConflict,
    StoreUnavailable,
    UnknownKek,
)
from shared.keys.kek import KeyEncryptionKey, KeyWrapper
from shared.keys.keyring import KeyRing
from shared.keys.ledger import Ledger
from shared.keys.open_store import open_store
from shared.keys.records import KeyInfo, KeyState, VersionInfo
from shared.keys.scopes import Principal, Scope
from shared.keys.store import RecordStore, Stored
from shared.keys.token_records import TokenInfo
from shared.keys.tokens import TokenRegistry
from shared.keys.unlocked import UnlockedKey, UnlockedVersion

__all__ = [
    "ExpiredToken",
    "InvalidName",
    "InvalidToken",
    "InvalidTransition",
    "KeyCache",
    "KeyEncryptionKey",
    "KeyExists",
    "KeyInfo",
    "KeyNotFound",
    "KeyRing",
    "KeyState",
    "KeyStoreError",
    "KeyWrapper",
    "Ledger",
    "Principal",
    "RecordRolledBack",
    "RecordStore",
    "RecordTampered",
    "RevisionConflict",
    "Scope",
    "StoreUnavailable",
    "Stored",
    "TokenInfo",
    "TokenRegistry",
    "UnknownKek",
    "UnlockedKey",
    "UnlockedVersion",
    "VersionInfo",
    "derive_prf_key",
    "open_store",
]
