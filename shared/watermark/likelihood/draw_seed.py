"""What the draws of p-values are seeded with."""

import hashlib
import hmac
from collections.abc import Sequence

from ttmark.shared.watermark.likelihood.hidden_markov_model import Chain


def secret_of(prf_keys: Sequence[bytes]) -> bytes:
    """The secret for draws of whoever has no other: HKDF-SHA256 (RFC 5869) of the keys tried, no salt."""
    extracted = hmac.digest(bytes(32), b"".join(sorted(prf_keys)), "sha256")
    return hmac.digest(extracted, b"ttmark draws\x01", "sha256")


def draw_seed(secret: bytes, name: str, chain: Chain, tokens: bytes) -> int:
    """64 bits from a text, its watermark's name and a secret of who detects, which is no watermark key.

    With a public seed anybody could look for texts with lucky draws, found at 1.2 to 1.8 times the rate.

    Raises:
        ValueError: the secret has more than 64 bytes.
    """
    digest = hashlib.blake2b(key=secret, digest_size=8)
    for part in (name.encode(), tokens, chain.kinds.tobytes(), chain.surprise.tobytes()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return int.from_bytes(digest.digest(), "little")
