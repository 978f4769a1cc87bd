"""The key pair that a service signs cases with: Ed25519 (RFC 8032), in PEM files."""

import hashlib
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)


class NotACaseKey(ValueError):
    """The text is not a key of this kind."""


@dataclass(frozen=True, slots=True)
class CasePublicKey:
    """What a second person verifies cases with."""

    key: Ed25519PublicKey

    @classmethod
    def from_pem(cls, text: str) -> "CasePublicKey":
        """The key in a PEM file.

        Raises:
            NotACaseKey: it holds none.
        """
        try:
            key = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise NotACaseKey("not a public key in PEM") from error
        if not isinstance(key, Ed25519PublicKey):
            raise NotACaseKey("not an Ed25519 key")
        return cls(key)

    def pem(self) -> str:
        """The text of a file for `from_pem`."""
        return self.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    @property
    def name(self) -> str:
        """Short name of the key: 16 hexadecimal digits of the hash of its 32 bytes."""
        raw = self.key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return hashlib.sha256(raw).hexdigest()[:16]

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether `signature` is this key's of `message`."""
        try:
            self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class CaseKey:
    """The secret half."""

    key: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> "CaseKey":
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, text: str) -> "CaseKey":
        """The key in a PEM file without a password, such as `openssl genpkey -algorithm ed25519` writes.

        Raises:
            NotACaseKey: it holds none.
        """
        try:
            key = load_pem_private_key(text.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise NotACaseKey("not a private key in PEM without a password") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise NotACaseKey("not an Ed25519 key")
        return cls(key)

    def pem(self) -> str:
        """The text of a file for `from_pem`."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @property
    def public(self) -> CasePublicKey:
        return CasePublicKey(self.key.public_key())

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""
        return self.key.sign(message)
