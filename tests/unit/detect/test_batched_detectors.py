"""Many documents at once give what the core's detectors give one by one."""

import numpy as np
import pytest

from ttmark.detect_service.direct_detector import direct
from ttmark.detect_service.position_detectors import aligned, localized
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized

PRF_KEYS = [bytes(range(16)), bytes(16)]
VERSIONS = [(prf_key,) for prf_key in PRF_KEYS]


def documents() -> list[np.ndarray]:
    """Texts of many lengths; some repeat themselves, some repeat each other."""
    generator = np.random.default_rng(5)
    lengths = [0, 1, 5, 30, 31, 400, 3, *range(60, 90)]
    texts = [generator.integers(0, 50, size=length) for length in lengths]
    return [*texts, texts[5], np.tile(texts[3], 9), np.zeros(77, dtype=np.int64), texts[5][:399]]


@pytest.mark.parametrize("scheme", ["synthid", "dipmark", "mcmark", "gumbel"])
@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("phase", [0, "any"])
def test_direct_detection_of_a_batch_equals_its_documents_one_by_one(scheme, block_size, phase):
    watermark = Watermark(scheme, block_size)
    texts = [*documents()[:8], np.random.default_rng(6).integers(0, 50, size=20_000)]
    batch = direct([phase] * len(texts))(watermark, VERSIONS, texts)
    for tokens, of_document in zip(texts, batch, strict=True):
        for prf_key, tried in zip(PRF_KEYS, of_document, strict=True):
            evidence, expected = tried.evidence, detect_direct(watermark, prf_key, tokens, phase=phase)
            assert (evidence.log10_p, evidence.z) == (expected.log10_p, expected.z)
            assert (evidence.phase, evidence.hypotheses) == (expected.phase, expected.hypotheses)
            np.testing.assert_array_equal(evidence.starts, expected.starts)
            np.testing.assert_array_equal(evidence.scores, expected.scores)
            assert tried.first_log10_p == detect_direct(watermark, prf_key, tokens, phase=0).log10_p


def test_documents_of_both_phases_in_one_batch_are_each_read_with_their_own():
    watermark = Watermark("synthid", 2)
    phases = [("any", 0)[number % 2] for number in range(len(documents()))]
    batch = direct(phases)(watermark, VERSIONS, documents())
    for tokens, phase, of_document in zip(documents(), phases, batch, strict=True):
        expected = [detect_direct(watermark, key, tokens, phase=phase) for key in PRF_KEYS]
        assert [tried.evidence.log10_p for tried in of_document] == [one.log10_p for one in expected]
        assert [tried.evidence.hypotheses for tried in of_document] == [one.hypotheses for one in expected]


def test_the_null_statistic_is_the_first_phases_and_uniform_whichever_phase_is_best():
    watermark = Watermark("gumbel", 2)  # a continuous null: no p-value stands for several scores
    texts = [np.random.default_rng(seed).integers(0, 5_000, size=400) for seed in range(2_000)]
    batch = direct(["any"] * len(texts))(watermark, VERSIONS[:1], texts)
    p_values = np.array([10**tried.first_log10_p for (tried,) in batch])
    # Dvoretzky-Kiefer-Wolfowitz: a uniform sample of 2,000 lies further from its law once in 10**5 times.
    distance = np.abs(np.sort(p_values) - (np.arange(2_000) + 0.5) / 2_000).max()
    assert distance < np.sqrt(np.log(2e5) / (2 * 2_000))
    smallest = np.array([10**tried.evidence.log10_p for (tried,) in batch])
    assert (smallest <= 0.05).mean() <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2_000)


@pytest.mark.parametrize("scheme", ["synthid", "dipmark", "mcmark", "gumbel"])
@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("beta", [5.0, 0.5])
def test_aligned_detection_of_a_batch_equals_its_documents_one_by_one(scheme, block_size, beta):
    watermark = Watermark(scheme, block_size)
    texts = documents() if beta == 5.0 else documents()[:5]  # another beta has no table but 1,000 decoys
    batch = aligned(beta)(watermark, VERSIONS, texts)
    for tokens, of_document in zip(texts, batch, strict=True):
        expected = [detect_aligned(watermark, key, tokens, beta=beta) for key in PRF_KEYS]
        assert [tried.evidence for tried in of_document] == expected


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("method", ["scan", "waterseeker"])
def test_localized_detection_of_a_batch_equals_its_documents_one_by_one(method, block_size):
    watermark = Watermark("synthid", block_size)
    batch = localized(method, -0.1)(watermark, VERSIONS, documents())
    for tokens, of_document in zip(documents(), batch, strict=True):
        expected = [
            detect_localized(watermark, key, tokens, method=method, log10_e_limit=-0.1) for key in PRF_KEYS
        ]
        assert [tried.evidence for tried in of_document] == expected


def test_batches_that_are_scored_in_parts_equal_their_documents_one_by_one(monkeypatch):
    monkeypatch.setattr("ttmark.detect_service.position_detectors._ROWS", 700)
    watermark = Watermark("synthid", 2)
    batch = aligned(5.0)(watermark, VERSIONS[:1], documents())
    expected = [detect_aligned(watermark, PRF_KEYS[0], tokens) for tokens in documents()]
    assert [tried.evidence for (tried,) in batch] == expected


def test_no_documents_and_no_keys_are_batches_too():
    watermark = Watermark("synthid", 2)
    assert direct([])(watermark, VERSIONS, []) == []
    assert direct([0] * len(documents()))(watermark, [], documents()) == [[] for _ in documents()]
    for detector in (aligned(5.0), localized("scan", -2.0)):
        assert detector(watermark, VERSIONS, []) == []
        assert detector(watermark, [], documents()) == [[] for _ in documents()]
