"""The p-value of E, drawn for."""

import hashlib
import math
import struct
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.harness.spec_detector.paths import Prior, Text, Words, drawn, log10_sums, more_priors
from tests.harness.spec_detector.ratios import Array

PILOT = 2**40


def secret_of(keys: Sequence[bytes]) -> bytes:
    """Where no other secret for draws is: HKDF-SHA256 of the keys that are tried together."""
    return HKDF(SHA256(), 32, None, b"ttmark draws").derive(b"".join(sorted(keys)))


def seed_of(secret: bytes, name: str, tokens: Sequence[int], text: Text) -> int:
    """Of a text's draws."""
    x = np.zeros(text.positions) if text.surprise is None else text.surprise
    parts = (
        name.encode(),
        struct.pack(f"<{len(tokens)}q", *tokens),
        bytes(text.classes.tolist()),
        struct.pack(f"<{text.positions}d", *x.tolist()),
    )
    content = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    return int.from_bytes(hashlib.blake2b(content, key=secret, digest_size=8).digest(), "little")


def log10_mean(values: Array) -> Array:
    """log10 of the mean of 10**values over the first axis."""
    most = values.max(axis=0)
    mean: Array = np.log10((10.0 ** (values - most)).mean(axis=0)) + most
    return mean


def log10_sum(values: Sequence[float]) -> float:
    """log10 of the sum of 10**values."""
    return float(log10_mean(np.array(values))) + math.log10(len(values))


class Tail:
    """Draws for one text at one rate."""

    def __init__(self, text: Text, log10_rate: float, seed: int) -> None:
        self._text, self._seed = text, seed
        self._own = text.priors()
        self._priors: list[Prior] = [*self._own, *more_priors(text.positions)]
        n = len(self._priors)
        most = max(32, min(4096, 3_000_000 // text.positions))
        shares = np.array([0.1, *[0.9 / n] * n])
        sums, log10_e, log10_w = self._draw(shares, PILOT, max(32, min(512, most // 4)))
        order, weights = np.argsort(-log10_e, kind="stable"), 10.0**log10_w
        running = np.cumsum(weights[order]) / order.size
        tail = order[: int(np.count_nonzero(running < 10.0**log10_rate)) + 1]
        v = weights[tail] / weights[tail].sum()
        of_tail = 10.0 ** (sums[:, tail] - sums[:, tail].max(axis=0))
        fitted = np.full(n, 1 / n)
        for _ in range(16):
            g = np.maximum(fitted, 1e-9)[:, None] * of_tail
            fitted = (g / g.sum(axis=0)) @ v
        self._shares = np.array([0.1, *(0.3 / n + 0.6 * fitted)])
        _, w = self._weighed(self._shares, sums[:, tail])
        needed = math.ceil(100 * max(0.0, float((v * 10.0**w).sum()) / 10.0**log10_rate - 1))
        self.draws = min(most, max(32, needed))
        _, self._log10_e, self._log10_w = self._draw(self._shares, 0, self.draws)

    def _draw(self, shares: Array, first: int, count: int) -> tuple[Array, Array, Array]:
        choice = Words(self._seed + 1, first, count).chance()
        along = np.searchsorted(np.cumsum(shares)[:-1], choice, side="right") - 1
        cells = drawn(self._text, self._priors, self._seed, first, along)
        sums = log10_sums(self._text, self._priors, cells)
        return sums, *self._weighed(shares, sums)

    def _weighed(self, shares: Array, sums: Array) -> tuple[Array, Array]:
        """log10 E and log10 w of rows, from their sums along the priors."""
        with np.errstate(divide="ignore"):
            parts = np.vstack([np.zeros(sums.shape[1]), sums]) + np.log10(shares)[:, None]
        return log10_mean(sums[: len(self._own)]), -(log10_mean(parts) + math.log10(shares.size))

    def log10_p(self, cells: Array) -> float:
        """Of one row of cells."""
        sums = log10_sums(self._text, self._priors, cells[None])
        (log10_e,), (log10_w,) = self._weighed(self._shares, sums)
        reached = self._log10_e >= log10_e
        total = log10_sum([log10_w, *self._log10_w[reached]])
        if not reached.any():
            best = int(np.argmax(self._log10_e))
            total = max(total, self._log10_w[best] + self._log10_e[best] - log10_e)
        return min(0.0, total - math.log10(self.draws + 1))
