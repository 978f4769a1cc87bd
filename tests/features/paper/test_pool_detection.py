"""A pool of keys: all of them at once give what the core's detectors give under one after the other."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.unit.detect_service.held_keys import under
from ttmark.detect_service.features.paper.detectors import aligned, direct, localized
from ttmark.shared.watermark.detectors.alignment import detect_aligned, needs_decoys
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.detectors.localized import detect_localized
from ttmark.shared.watermark.nulls import corrected
from ttmark.shared.watermark.schemes.watermark import Watermark

LIMIT = -0.3
POOL = [bytes([number, 7]) + bytes(14) for number in range(16)]
DETECTORS = {
    "direct": direct(0, LIMIT),
    "any": direct("any", LIMIT),
    "aligned": aligned(5.0, LIMIT),
    "scan": localized("scan", LIMIT),
    "waterseeker": localized("waterseeker", LIMIT),
}


def documents() -> list[np.ndarray]:
    """Texts of many lengths, empty ones too; some repeat themselves."""
    generator = np.random.default_rng(5)
    texts = [generator.integers(0, 50, size=length) for length in (0, 3, 400, 31, 5, 90, 0)]
    return [*texts, np.tile(texts[3], 9)]


def alone(mode: str, watermark: Watermark, key: bytes, tokens: np.ndarray, log10_e_limit: float) -> list[Any]:
    """What the core's detector says under one key, in direct detection at each phase."""
    if mode == "aligned":
        return [detect_aligned(watermark, key, tokens)]
    if mode in ("direct", "any"):
        phases = range(watermark.block_size if mode == "any" else 1)
        return [detect_direct(watermark, key, tokens, phase=phase) for phase in phases]
    return [detect_localized(watermark, key, tokens, method=mode, log10_e_limit=log10_e_limit)]


@pytest.mark.parametrize(("scheme", "block_size"), [("synthid", 1), ("synthid", 3), ("gumbel", 2)])
@pytest.mark.parametrize("mode", DETECTORS)
def test_a_pool_gives_what_its_keys_give_one_by_one(mode: str, scheme: str, block_size: int) -> None:
    watermark = Watermark(scheme, block_size)
    for tokens, pool in itertools.product(documents(), (POOL, [bytes(16)], POOL[:3])):
        tried, step = under(DETECTORS[mode], watermark, pool, tokens), math.log10(len(pool))
        if mode == "aligned" and needs_decoys(watermark, 5.0, tried.evidence.scored_blocks):
            continue  # which the keys of a pool have in common
        each = [alone(mode, watermark, key, tokens, LIMIT - step) for key in pool]
        tries = len(pool) * len(each[0])
        own = [corrected(min(one.log10_p for one in of_key), tries) for of_key in each]
        assert (tried.evidence.log10_p, tried.evidence.hypotheses) == (
            pytest.approx(min(own), abs=1e-9),
            tries,
        )
        assert own[tried.pool_key] == pytest.approx(min(own), abs=1e-9)
        assert tried.null_log10_p == pytest.approx(each[0][0].log10_p, abs=1e-9)
        if tried.segments is None:
            expected = sorted((p, number) for number, p in enumerate(own) if p <= LIMIT)
        else:
            of_keys = [(number, of_key[0].segments) for number, of_key in enumerate(each)]
            expected = sorted(
                (segments[0].log10_e + step, number) for number, segments in of_keys if segments
            )
            every = {
                (n, one.start, one.end, one.log10_e + step) for n, segments in of_keys for one in segments
            }
            assert {(one.pool_key, one.start, one.end, one.log10_e) for one in tried.segments} <= every
            spans = sorted((one.start, one.end) for one in tried.segments)
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
            assert min((one.log10_e for one in tried.segments), default=0) == min(
                (e[3] for e in every), default=0
            )
        assert [one.pool_key for one in tried.fired] == [number for _, number in expected]
        assert [one.log10_p for one in tried.fired] == pytest.approx([p for p, _ in expected], abs=1e-9)
