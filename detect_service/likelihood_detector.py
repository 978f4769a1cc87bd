"""The likelihood ratio as the detector of `POST /v1/detect`."""

import math
from collections.abc import Callable

import numpy as np

from ttmark.detect_service.detectors import LikelihoodFigures, Tokens, Tried
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.watermark import Watermark, detect_direct
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.redrawn import Redrawn


class LikelihoodDetector:
    """Of one reading of one document: what needs no key is made once for all versions of one profile.

    Args:
        log10_limit: the corrected p-value within which a key counts as found, and that p-values are as sharp
            as needed for.
        secret: seeds the draws, see `LikelihoodTest`.
        reading: what a language model says of the document's tokens under a key; None: none read it.
    """

    def __init__(
        self, log10_limit: float, secret: bytes, reading: Callable[[UnlockedKey], Reading | None]
    ) -> None:
        self._log10_limit = log10_limit
        self._secret = secret
        self._reading = reading
        self._tests: dict[tuple[str, str, int], LikelihoodTest] = {}
        self._first_log10_p: float | None = None

    def __call__(
        self, key: UnlockedKey, version: UnlockedVersion, tokens: Tokens, redrawn: Redrawn | None = None
    ) -> Tried:
        pause()
        watermark, pool = key.profile.watermark(), version.prf_keys
        found = self._test(key, watermark, tokens, len(pool), redrawn).under(pool)
        if self._first_log10_p is None:
            self._first_log10_p = detect_direct(watermark, pool[0], tokens).log10_p
        step = math.log10(len(pool))
        own = np.minimum(0.0, found.p_of_keys + step)
        fired = np.flatnonzero(own <= self._log10_limit)
        return Tried(
            LikelihoodFigures(found.log10_p, found.of_keys, found.scored, len(pool)),
            first_log10_p=self._first_log10_p,
            blocks=-(-found.positions // watermark.block_size),
            correction=len(pool),
            pool_key=found.best,
            fired=tuple(sorted((float(own[number]), int(number)) for number in fired)),
        )

    def _test(
        self, key: UnlockedKey, watermark: Watermark, tokens: Tokens, keys: int, redrawn: Redrawn | None
    ) -> LikelihoodTest:
        name = (key.profile.profile_id, key.profile.tokenizer_fingerprint, keys)
        if name not in self._tests:
            self._tests[name] = LikelihoodTest(
                watermark,
                tokens,
                rate=10.0 ** (self._log10_limit - math.log10(keys)),
                reading=self._reading(key),
                secret=self._secret,
                spent=None if redrawn is None else redrawn.rows,
            )
        return self._tests[name]
