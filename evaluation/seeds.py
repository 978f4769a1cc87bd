"""Keys and seeds of a run's texts: functions of the run's seed, the cell and the text."""

import hashlib

PRF_KEY_BYTES = 16


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()


def prf_key(seed: int, *parts: object) -> bytes:
    """A watermark key; a text has its own, so that texts are independent samples also over keys."""
    return _digest("key", seed, *parts)[:PRF_KEY_BYTES]


def sampling_seed(seed: int, *parts: object) -> int:
    """A seed for the engine or for numpy."""
    return int.from_bytes(_digest("sampling", seed, *parts)[:6], "little")
