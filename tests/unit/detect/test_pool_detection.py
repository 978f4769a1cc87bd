"""A pool of keys: all of them at once give what the core's detectors give under one after the other."""

import itertools
import math

import numpy as np
import pytest

from tests.unit.detect.held_keys import under
from ttmark.detect_service.paper.detectors import aligned, direct, localized
from ttmark.detect_service.verdict import Finding
from ttmark.shared.watermark import Watermark, corrected, detect_aligned, detect_direct, detect_localized
from ttmark.shared.watermark.detectors.alignment import needs_decoys

POOL = [bytes([number, 7]) + bytes(14) for number in range(16)]
VERSIONS = [POOL, [bytes(16)], POOL[:3]]


def documents() -> list[np.ndarray]:
    """Texts of many lengths, empty ones too; some repeat themselves."""
    generator = np.random.default_rng(5)
    texts = [generator.integers(0, 50, size=length) for length in (0, 3, 400, 31, 5, 90, 0)]
    return [*texts, np.tile(texts[3], 9)]


def keys_that_fired(tried: Finding) -> list[tuple[float, int]]:
    return [(one.log10_p, one.pool_key) for one in tried.fired]


@pytest.mark.parametrize("scheme", ["synthid", "dipmark", "mcmark", "gumbel"])
@pytest.mark.parametrize("phase", [0, "any"])
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_direct_detection_under_a_pool_equals_its_keys_one_by_one(scheme, block_size, phase):
    watermark, limit = Watermark(scheme, block_size), -0.5
    for tokens in documents():
        for pool in VERSIONS:
            tried = under(direct(phase, limit), watermark, pool, tokens)
            phases = range(block_size) if phase == "any" else [0]
            tries = len(pool) * len(phases)
            each = [[detect_direct(watermark, key, tokens, phase=p) for p in phases] for key in pool]
            own = [min(one.log10_p for one in of_key) for of_key in each]
            assert tried.evidence.log10_p == corrected(min(own), tries)
            assert tried.evidence.hypotheses == tries
            of_best = {one.phase: one for one in each[tried.pool_key]}  # of several as good, any
            expected = of_best[tried.evidence.phase]
            assert corrected(expected.log10_p, tries) == tried.evidence.log10_p
            assert tried.evidence.z == expected.z
            np.testing.assert_array_equal(tried.evidence.scores, expected.scores)
            assert tried.null_log10_p == pytest.approx(each[0][0].log10_p, abs=1e-9)
            fired = sorted((corrected(p, tries), number) for number, p in enumerate(own))
            fired = [one for one in fired if one[0] <= limit]
            assert [one.pool_key for one in tried.fired] == [number for _, number in fired]
            assert [one.log10_p for one in tried.fired] == pytest.approx([p for p, _ in fired], abs=1e-9)


@pytest.mark.parametrize("beta", [5.0, 0.5])
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_aligned_detection_under_a_pool_equals_its_keys_one_by_one(block_size, beta):
    watermark, limit = Watermark("synthid", block_size), -0.3
    texts = documents() if beta == 5.0 else documents()[2:3]  # another beta has no table but decoys
    for tokens in texts:
        for pool in VERSIONS:
            tried = under(aligned(beta, limit), watermark, pool, tokens)
            each = [detect_aligned(watermark, key, tokens, beta=beta) for key in pool]
            best = max(range(len(pool)), key=lambda number: (each[number].z, -number))
            assert tried.pool_key == best
            assert tried.evidence.z == each[best].z
            assert tried.evidence.hypotheses == len(pool)
            if not needs_decoys(watermark, beta, tried.evidence.scored_blocks):
                # Decoys are what the keys of a pool have in common.
                assert tried.null_log10_p == each[0].log10_p
                own = [corrected(one.log10_p, len(pool)) for one in each]
                assert tried.evidence.log10_p == min(own)
                assert keys_that_fired(tried) == sorted((p, n) for n, p in enumerate(own) if p <= limit)
            elif best == 0:
                assert tried.evidence.log10_p == corrected(each[0].log10_p, len(pool))


@pytest.mark.parametrize("block_size", [1, 2])
@pytest.mark.parametrize("method", ["scan", "waterseeker"])
@pytest.mark.parametrize("rows", [700, 65536])
def test_localized_detection_under_a_pool_equals_its_keys_one_by_one(monkeypatch, method, block_size, rows):
    monkeypatch.setattr("ttmark.shared.watermark.detectors.localized.POSITION_SCORES", rows)
    watermark, limit = Watermark("synthid", block_size), -0.3
    seen = 0
    for tokens in documents():
        for pool in VERSIONS:
            tried = under(localized(method, limit), watermark, pool, tokens)
            step = math.log10(len(pool))
            each = [
                detect_localized(watermark, key, tokens, method=method, log10_e_limit=limit - step)
                for key in pool
            ]
            assert tried.evidence.log10_p == corrected(min(one.log10_p for one in each), len(pool))
            assert each[tried.pool_key].log10_p == min(one.log10_p for one in each)
            assert tried.null_log10_p == each[0].log10_p
            assert keys_that_fired(tried) == sorted(
                (one.segments[0].log10_e + step, n) for n, one in enumerate(each) if one.segments
            )
            found = {(one.pool_key, one.start, one.end, one.log10_e) for one in tried.segments}
            every = {
                (number, segment.start, segment.end, segment.log10_e + step)
                for number, one in enumerate(each)
                for segment in one.segments
            }
            assert found <= every
            seen += len(found)
            spans = sorted((start, end) for _, start, end, _ in found)
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
            if every:
                assert min(one[3] for one in found) == min(one[3] for one in every)
    assert seen or method == "waterseeker"
