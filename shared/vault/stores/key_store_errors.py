"""The errors of the key store; every message is one line and holds no secret."""


class KeyStoreError(Exception):
    """Anything that goes wrong with keys, tokens and their store."""


class StoreUnavailable(KeyStoreError):
    """The store did not answer; whether a change that was under way took effect is unknown."""


class RevisionConflict(KeyStoreError):
    """The record is not at the revision that the change was made from."""


class RecordTampered(KeyStoreError):
    """The record was altered, truncated, or belongs under another name."""


class RecordRolledBack(RecordTampered):
    """The record is older than, or does not descend from, one that was seen before."""


class UnknownKek(KeyStoreError):
    """No key-encryption key at hand opens the record."""


class NoSuchKey(KeyStoreError):
    """There is no such key, or no such version of it."""


class KeyExists(KeyStoreError):
    """The key id is taken."""


class InvalidName(KeyStoreError, ValueError):
    """The key id or tenant is not a valid name."""


class InvalidTransition(KeyStoreError):
    """The version's state does not allow the change."""


class ReplicasBehind(InvalidTransition):
    """A running replica does not know the version yet."""


class InvalidToken(KeyStoreError):
    """Malformed, unknown, wrong or revoked: the caller learns only that it does not open anything."""


class ExpiredToken(InvalidToken):
    """The token was good and its time is over."""
