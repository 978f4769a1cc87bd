"""The keys that seal records: a data key for each record, wrapped by the key-encryption key."""

import hashlib
import hmac
import os
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.vault.stores.key_store_errors import RecordTampered, UnknownKek

NONCE_BYTES = 12


def aes_gcm_seal(key: bytes, plain: bytes, associated: bytes) -> bytes:
    """AES-256-GCM: random 96-bit nonce, ciphertext, tag."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, associated)


def aes_gcm_open(key: bytes, sealed: bytes, associated: bytes) -> bytes:
    """Inverse of `aes_gcm_seal`.

    Raises:
        RecordTampered: wrong key, wrong associated data, or altered.
    """
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], associated)
    except (InvalidTag, ValueError) as error:
        raise RecordTampered("sealed data does not open under its name and key") from error


class DataKey(Confidential):
    """A random 256-bit key; only its wrapped form is stored."""

    __slots__ = ("_key", "_mac_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._mac_key = hmac.digest(key, b"ttmark record authentication", hashlib.sha256)

    @classmethod
    def generate(cls) -> "DataKey":
        return cls(os.urandom(32))

    def seal(self, plain: bytes, associated: bytes) -> bytes:
        """Encrypts `plain`, bound to `associated`."""
        return aes_gcm_seal(self._key, plain, associated)

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """Decrypts; RecordTampered unless `associated` is what it was sealed with."""
        return aes_gcm_open(self._key, sealed, associated)

    def authenticate(self, message: bytes) -> str:
        """HMAC-SHA256 of `message`, in hex."""
        return hmac.digest(self._mac_key, message, hashlib.sha256).hex()

    def authenticates(self, message: bytes, mac: str) -> bool:
        """Whether `mac` is the one of `message`, compared in constant time."""
        return hmac.compare_digest(self.authenticate(message).encode(), mac.encode())

    def exposed(self) -> bytes:
        return self._key


KEK_BYTES = 32


class KeyWrapper(Protocol):
    """What wraps data keys: a local key, or the seam where a cloud KMS plugs in."""

    @property
    def kek_id(self) -> str:
        """Name of the key that wraps from now on; stored beside what it wraps."""

    async def wrap(self, data_key: bytes, associated: bytes) -> bytes:
        """Encrypts a data key under `kek_id`, bound to `associated`."""

    async def unwrap(self, kek_id: str, wrapped: bytes, associated: bytes) -> bytes:
        """Decrypts what `kek_id` wrapped.

        Raises:
            UnknownKek: there is no such key.
            RecordTampered: the wrapped key or the associated data was altered.
        """


def _kek_id(key: bytes) -> str:
    return hashlib.sha256(b"ttmark kek id" + key).hexdigest()[:16]


class KeyEncryptionKey(Confidential):
    """A local AES-256 key, and the older ones that still open what they wrapped during a rewrap."""

    __slots__ = ("_current", "_keys")

    def __init__(self, current: bytes, *older: bytes) -> None:
        if any(len(key) != KEK_BYTES for key in (current, *older)):
            raise ValueError(f"a key-encryption key is {KEK_BYTES} bytes long")
        self._current = _kek_id(current)
        self._keys = {_kek_id(key): key for key in (current, *older)}

    @classmethod
    def from_text(cls, text: str) -> "KeyEncryptionKey":
        """Reads the contents of a key file: one key of 64 hex digits per line, the current one first.

        Raises:
            ValueError: not that; the message does not repeat the text.
        """
        try:
            keys = [bytes.fromhex(line) for line in text.split()]
        except ValueError:
            keys = []
        if not keys or any(len(key) != KEK_BYTES for key in keys):
            raise ValueError(f"a key-encryption key is {2 * KEK_BYTES} hexadecimal digits, one key per line")
        return cls(*keys)

    @staticmethod
    def generate_text() -> str:
        """The contents of a new key file."""
        return os.urandom(KEK_BYTES).hex() + "\n"

    @property
    def kek_id(self) -> str:
        """First 64 bits of a hash of the current key, in hex."""
        return self._current

    def derive(self, purpose: bytes) -> bytes:
        """A 32-byte key for another purpose, from the current key: HKDF-SHA256 (RFC 5869)."""
        return HKDF(SHA256(), length=KEK_BYTES, salt=None, info=purpose).derive(self._keys[self._current])

    async def wrap(self, data_key: bytes, associated: bytes) -> bytes:
        return aes_gcm_seal(self._keys[self._current], data_key, associated)

    async def unwrap(self, kek_id: str, wrapped: bytes, associated: bytes) -> bytes:
        if kek_id not in self._keys:
            raise UnknownKek(f"sealed under the key-encryption key {kek_id}, which is not at hand")
        return aes_gcm_open(self._keys[kek_id], wrapped, associated)
