"""From the stored secret of a key version to the PRF key of one profile."""

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from shared.schemas.profile import Profile

PRF_KEY_BYTES = 16


def derive_prf_key(secret: bytes, profile: Profile) -> bytes:
    """16-byte PRF key: HKDF-SHA256 (RFC 5869), no salt, info = the profile's canonical form.

    Two profiles never share a PRF key, even when they share a secret.
    """
    return HKDF(algorithm=SHA256(), length=PRF_KEY_BYTES, salt=None, info=profile.canonical()).derive(secret)
