"""A pool of keys: all of them at once give what the core's detectors give under one after the other."""

import itertools
import math

import numpy as np
import pytest
from ttmark.detect_service.direct_detector import direct
from ttmark.detect_service.position_detectors import aligned, localized

from ttmark.shared.watermark import Watermark, corrected, detect_aligned, detect_direct, detect_localized

POOL = [bytes([number, 7]) + bytes(14) for number in range(40)]
VERSIONS = [POOL, [bytes(16)], POOL[:3]]


def documents() -> list[np.ndarray]:
    """Texts of many lengths, empty ones too; some repeat themselves."""
    generator = np.random.default_rng(5)
    texts = [generator.integers(0, 50, size=length) for length in (0, 3, 400, 31, 5, 90, 0)]
    return [*texts, np.tile(texts[3], 9)]


@pytest.mark.parametrize("scheme", ["synthid", "dipmark", "mcmark", "gumbel"])
@pytest.mark.parametrize("phase", [0, "any"])
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_direct_detection_under_a_pool_equals_its_keys_one_by_one(scheme, block_size, phase):
    watermark, limit = Watermark(scheme, block_size), -0.5
    texts = documents()
    batch = direct([phase] * len(texts), limit)(watermark, VERSIONS, texts)
    for tokens, of_document in zip(texts, batch, strict=True):
        for pool, tried in zip(VERSIONS, of_document, strict=True):
            phases = range(block_size) if phase == "any" else [0]
            tries = len(pool) * len(phases)
            each = [[detect_direct(watermark, key, tokens, phase=p) for p in phases] for key in pool]
            own = [min(one.log10_p for one in of_key) for of_key in each]
            best = own.index(min(own))
            assert tried.pool_key == best
            assert tried.evidence.log10_p == corrected(min(own), tries)
            assert tried.evidence.hypotheses == tries
            expected = min(each[best], key=lambda one: corrected(one.log10_p, tries))
            assert (tried.evidence.phase, tried.evidence.z) == (expected.phase, expected.z)
            np.testing.assert_array_equal(tried.evidence.scores, expected.scores)
            assert tried.first_log10_p == pytest.approx(each[0][0].log10_p, abs=1e-9)
            fired = sorted(p for p in (corrected(one, tries) for one in own) if p <= limit)
            assert tried.fired == pytest.approx(fired, abs=1e-9)


@pytest.mark.parametrize("beta", [5.0, 0.5])
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_aligned_detection_under_a_pool_equals_its_keys_one_by_one(block_size, beta):
    watermark, limit = Watermark("synthid", block_size), -0.3
    texts = documents() if beta == 5.0 else documents()[2:3]  # another beta has no table but decoys
    batch = aligned(beta, limit)(watermark, VERSIONS, texts)
    for tokens, of_document in zip(texts, batch, strict=True):
        for pool, tried in zip(VERSIONS, of_document, strict=True):
            each = [detect_aligned(watermark, key, tokens, beta=beta) for key in pool]
            best = max(range(len(pool)), key=lambda number: (each[number].z, -number))
            assert tried.pool_key == best
            assert tried.evidence.z == each[best].z
            assert tried.evidence.hypotheses == len(pool)
            if tried.evidence.null != "decoys":  # which the keys of a pool have in common
                assert tried.first_log10_p == each[0].log10_p
                own = [corrected(one.log10_p, len(pool)) for one in each]
                assert tried.evidence.log10_p == min(own)
                assert tried.fired == tuple(sorted(p for p in own if p <= limit))
            elif best == 0:
                assert tried.evidence.log10_p == corrected(each[0].log10_p, len(pool))


@pytest.mark.parametrize("block_size", [1, 2])
@pytest.mark.parametrize("method", ["scan", "waterseeker"])
@pytest.mark.parametrize("rows", [700, 65536])
def test_localized_detection_under_a_pool_equals_its_keys_one_by_one(monkeypatch, method, block_size, rows):
    monkeypatch.setattr("ttmark.detect_service.position_detectors._ROWS", rows)
    watermark, limit = Watermark("synthid", block_size), -0.3
    texts = documents()
    batch = localized(method, limit)(watermark, VERSIONS, texts)
    seen = 0
    for tokens, of_document in zip(texts, batch, strict=True):
        for pool, tried in zip(VERSIONS, of_document, strict=True):
            step = math.log10(len(pool))
            each = [
                detect_localized(watermark, key, tokens, method=method, log10_e_limit=limit - step)
                for key in pool
            ]
            assert tried.evidence.log10_p == corrected(min(one.log10_p for one in each), len(pool))
            assert each[tried.pool_key].log10_p == min(one.log10_p for one in each)
            assert tried.first_log10_p == each[0].log10_p
            assert tried.fired == tuple(
                sorted(one.segments[0].log10_e + step for one in each if one.segments)
            )
            found = {(one.pool_key, one.start, one.end, one.log10_e) for one in tried.evidence.segments}
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
