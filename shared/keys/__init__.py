"""Keys, access tokens and the stores that hold them; see `docs/adr/0030-key-records.md`."""

from shared.keys.audit import AuditEvent, AuditSink, log_audit
from shared.keys.backup import Restoration, create_backup, restore_backup
from shared.keys.cache import KeyCache
from shared.keys.counters import Counters
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
    ReplicasBehind,
    RevisionConflict,
    StoreUnavailable,
    UnknownKek,
)
from shared.keys.kek import KeyEncryptionKey, KeyWrapper
from shared.keys.keyring import KeyRing
from shared.keys.ledger import Ledger
from shared.keys.ledger_file import LedgerFile
from shared.keys.near_duplicates import NearDuplicateThrottle, Sketch, sketch_text, sketch_tokens
from shared.keys.open_store import open_counters, open_store
from shared.keys.rate_limit import RateLimiter
from shared.keys.records import KeyInfo, KeyState, VersionInfo
from shared.keys.replicas import ReplicaReporter
from shared.keys.scopes import Principal, Scope
from shared.keys.store import RecordStore, Stored
from shared.keys.token_limits import TokenLimits, Usage
from shared.keys.token_records import TokenInfo
from shared.keys.tokens import TokenRegistry
from shared.keys.unlocked import UnlockedKey, UnlockedVersion
from shared.keys.usage_limits import UsageLimits
from shared.keys.verification import Verification, verify_store

__all__ = [
    "AuditEvent",
    "AuditSink",
    "Counters",
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
    "LedgerFile",
    "NearDuplicateThrottle",
    "Principal",
    "RateLimiter",
    "RecordRolledBack",
    "RecordStore",
    "RecordTampered",
    "ReplicaReporter",
    "ReplicasBehind",
    "Restoration",
    "RevisionConflict",
    "Scope",
    "Sketch",
    "StoreUnavailable",
    "Stored",
    "TokenInfo",
    "TokenLimits",
    "TokenRegistry",
    "UnknownKek",
    "UnlockedKey",
    "UnlockedVersion",
    "Usage",
    "UsageLimits",
    "Verification",
    "VersionInfo",
    "create_backup",
    "derive_prf_key",
    "log_audit",
    "open_counters",
    "open_store",
    "restore_backup",
    "sketch_text",
    "sketch_tokens",
    "verify_store",
]
