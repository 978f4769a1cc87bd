"""The detector that a request asks for; it looks at a document under all versions of one profile."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ttmark.detect_service.paper_detectors import aligned, direct, localized
from ttmark.detect_service.verdict import Detector, LikelihoodFigures, Tokens, Tried
from ttmark.shared.keys.records import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)
from ttmark.shared.watermark import corrected, detect_direct
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.redrawn import Redrawn


def detector_for(
    request: DetectionRequest,
    document: Document,
    tries: int,
    *,
    share: float,
    secret: bytes,
    reading: Callable[[UnlockedKey], Reading | None],
) -> Detector:
    """The detector with the request's options, for one way to read a document.

    Args:
        tries: how many key versions are tried on how many readings of the document.
        share: of the rate, for the likelihood ratio.
        secret: that seeds its draws.
        reading: what a language model says of the document's tokens under a key.
    """
    limit = math.log10(request.fpr) - math.log10(max(1, tries))
    match request:
        case DirectRequest():
            return direct(request.phase_of(document), limit)
        case AlignedRequest():
            return aligned(request.beta, limit)
        case LocalizedRequest():
            return localized(request.method, limit)
        case CombinedRequest():
            return likelihood(limit + math.log10(share), secret, reading)
        case _:
            raise TypeError(f"no detector for {type(request).__name__}")


def likelihood(
    log10_limit: float, secret: bytes, reading: Callable[[UnlockedKey], Reading | None]
) -> Detector:
    """The likelihood ratio: the detector of `POST /v1/detect`.

    Args:
        log10_limit: the corrected p-value within which a key counts as found, and that p-values are as sharp
            as needed for.
        secret: seeds the draws, see `LikelihoodTest`.
        reading: what a language model says of the document's tokens under a key; None: none read it.
    """

    def look(
        key: UnlockedKey,
        versions: Sequence[UnlockedVersion],
        tokens: Tokens,
        redrawn: Redrawn | None = None,
    ) -> list[Tried]:
        pause()
        watermark, pool = key.profile.watermark(), len(versions[0].prf_keys)
        step = math.log10(pool)
        test = LikelihoodTest(
            watermark,
            tokens,
            rate=10.0 ** (log10_limit - step),
            reading=reading(key),
            secret=secret,
            spent=None if redrawn is None else redrawn.rows,
        )
        found = test.under([prf_key for version in versions for prf_key in version.prf_keys])
        first = detect_direct(watermark, versions[0].prf_keys[0], tokens).log10_p
        tried = []
        for start in range(0, len(found.of_keys), pool):
            of_keys, p_of_keys = found.of_keys[start : start + pool], found.p_of_keys[start : start + pool]
            own = np.minimum(0.0, p_of_keys + step)
            fired = np.flatnonzero(own <= log10_limit)
            tried.append(
                Tried(
                    LikelihoodFigures(corrected(float(p_of_keys.min()), pool), of_keys, found.scored, pool),
                    first_log10_p=first,
                    blocks=-(-found.positions // watermark.block_size),
                    correction=pool,
                    # Of equal p-values the one with the largest E.
                    pool_key=int(np.lexsort((-of_keys, p_of_keys))[0]),
                    fired=tuple(sorted(zip(own[fired].tolist(), fired.tolist(), strict=True))),
                )
            )
        return tried

    return look
