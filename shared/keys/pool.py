"""The pool of PRF keys that follows from one secret."""

import hmac
import struct

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ttmark.shared.schemas.profile import Profile

PRF_KEY_BYTES = 16


def derive_prf_keys(secret: bytes, profile: Profile) -> tuple[bytes, ...]:
    """The 16-byte PRF keys of the profile's pool [pool]: HKDF-SHA256 (RFC 5869), no salt.

    Info is the profile's canonical form, in a pool of several followed by a zero byte and the key's number
    (`docs/spec.md`). Two profiles never share a PRF key, even when they share a secret.
    """
    info = profile.canonical()
    if profile.pool == 1:
        return (HKDF(algorithm=SHA256(), length=PRF_KEY_BYTES, salt=None, info=info).derive(secret),)
    prk = hmac.digest(bytes(SHA256.digest_size), secret, "sha256")
    return tuple(
        # HKDF-Expand of no more than one digest.
        hmac.digest(prk, info + struct.pack("<xI", number) + b"\x01", "sha256")[:PRF_KEY_BYTES]
        for number in range(profile.pool)
    )
