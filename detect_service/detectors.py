"""The likelihood ratio: the detector of the one question, under all versions of one profile."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ttmark.detect_service.method import DocumentCost, Look, Method
from ttmark.detect_service.verdict import Detector, DocumentFinding, Fired, KeyVersion, Reach, Tokens
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.schemas.detection.detect import (
    CombinedRequest,
    CombinedResponse,
    CombinedResult,
    Document,
)
from ttmark.shared.watermark.detectors.alignment import BETA
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.interruption import pause
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.null_replacement import Redrawn
from ttmark.shared.watermark.schemes.watermark import Watermark

# In hashed blocks: a document, and of a token its rows, then its score and passes under each key. What
# p-values are drawn for costs no more: a charge must not tell what was drawn.
_DOCUMENT = 5_000.0
_TOKEN = 8.0
_KEY = 1.8


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
        versions: Sequence[KeyVersion], tokens: Tokens, redrawn: Redrawn | None = None
    ) -> list[DocumentFinding]:
        pause()
        key, version = versions[0]
        watermark, pool = key.profile.watermark(), len(version.prf_keys)
        step = math.log10(pool)
        test = LikelihoodTest(
            watermark,
            tokens,
            rate=10.0 ** (log10_limit - step),
            reading=reading(key),
            secret=secret,
            silent=None if redrawn is None else redrawn.rows,
        )
        found = test.under([prf_key for _, version in versions for prf_key in version.prf_keys])
        reach = Reach(watermark, -(-found.positions // watermark.block_size), pool)
        first = detect_direct(watermark, version.prf_keys[0], tokens).log10_p
        findings = []
        each = zip(versions, tuple(found.of_each(pool)), strict=True)
        for (key, version), (evidence, best, smallest, log10_e) in each:
            log10_p = np.minimum(0.0, evidence.p_of_keys + step)
            near = np.flatnonzero(log10_p <= log10_limit)
            fired = sorted(zip(log10_p[near].tolist(), near.tolist(), strict=True))
            findings.append(
                DocumentFinding(
                    key,
                    version,
                    pool_key=best,
                    fired=tuple(Fired(p_of_key, key, version, one) for p_of_key, one in fired),
                    evidence=evidence,
                    log10_p=smallest,
                    hypotheses=pool,
                    reach=(reach,),
                    null_log10_p=first,
                    log10_e=log10_e,
                )
            )
        return findings

    return look


def _cost(_: CombinedRequest, __: Sequence[Document], ___: Watermark, keys: int) -> DocumentCost:
    return lambda _, tokens: _DOCUMENT + tokens * (_TOKEN + keys * _KEY)


def _of_look(_: CombinedRequest, look: Look) -> Detector:
    return likelihood(look.log10_limit + math.log10(look.share), look.secret, look.reading)


LIKELIHOOD = Method(_of_look, _cost, CombinedResult, CombinedResponse, beta=lambda _: BETA)
