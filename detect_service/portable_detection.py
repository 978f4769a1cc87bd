"""Looks for one mark that a file describes in one text, without a key store."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttmark.detect_service.verdict import Reach, without_finding
from ttmark.shared.keys.portable_mark import MarkSecret, PortableMark
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood


@dataclass(frozen=True, slots=True)
class MarkAnswer:
    """What is said of a text, whatever the scheme.

    Attributes:
        verdict: watermarked, not_detected or too_short.
        log10_p: exact over keys, of the text as a whole; at most 0.
        tokens: of the text; `scored_tokens` count, of our own marks positions where a block may begin.
        score: of the original's own detector; of our own marks log10 E.
    """

    scheme: str
    verdict: str
    p_value: float
    log10_p: float
    fpr: float
    tokens: int
    scored_tokens: int
    score: float
    model: str | None


def answer_for(mark: PortableMark, secret: MarkSecret, tokens: Sequence[int], fpr: float) -> MarkAnswer:
    """Tests token ids as they are: nothing is normalised, and no passage is looked for by itself.

    Args:
        fpr: the false positive rate, above 0 and at most 0.1.

    Raises:
        MarkRefused: the mark does not commit to the secret, or the secret is no key of the scheme.
    """
    profile = mark.profile
    if isinstance(profile, Profile):
        pool, watermark = mark.prf_keys(secret), profile.watermark()
        own = detect_likelihood(watermark, pool, tokens, rate=fpr)
        log10_p, scored, score = min(0.0, own.log10_p), own.scored, own.log10_e
        blocks = -(-own.positions // watermark.block_size)
        otherwise = without_finding([Reach(watermark, blocks, len(pool))], fpr).verdict
    else:
        foreign = mark.foreign(secret)
        found = foreign.detect(tokens)
        log10_p, scored, score = found.log10_p, found.scored_tokens, found.score
        short = len(tokens) < foreign.tokens_needed(math.log10(fpr))
        otherwise = "too_short" if short else "not_detected"
    verdict = "watermarked" if log10_p <= math.log10(fpr) else otherwise
    return MarkAnswer(
        mark.scheme, verdict, 10.0**log10_p, log10_p, fpr, len(tokens), scored, score, mark.model
    )
