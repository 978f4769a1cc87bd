"""The data key of one record: seals the secrets in it and authenticates the whole."""

import hashlib
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.vault.key_store_errors import RecordTampered

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
        """A fresh key from the operating system's generator."""
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

    def derived(self, name: bytes) -> bytes:
        """32 bytes that are always the same under a name, and say nothing of the key or of other names."""
        return hmac.digest(self._key, b"ttmark derived\0" + name, hashlib.sha256)

    def exposed(self) -> bytes:
        """The key itself, for wrapping."""
        return self._key
