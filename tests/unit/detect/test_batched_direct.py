"""Many documents scored at once give what the core's detector gives one by one."""

import numpy as np
import pytest

from detect_service import detectors
from shared.watermark import Watermark, detect_direct

PRF_KEYS = [bytes(range(16)), bytes(16)]


@pytest.mark.parametrize("scheme", ["synthid", "dipmark", "mcmark", "gumbel"])
@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("phase", [0, "any"])
def test_a_batch_equals_its_documents_one_by_one(scheme: str, block_size: int, phase) -> None:
    generator = np.random.default_rng(5)
    watermark = Watermark(scheme, block_size)
    lengths = [0, 1, 5, 30, 31, 400, 20_000, 3]
    documents = [generator.integers(0, 50, size=length) for length in lengths]
    batch = detectors.direct(phase)(watermark, PRF_KEYS, documents)
    for tokens, of_document in zip(documents, batch, strict=True):
        for prf_key, evidence in zip(PRF_KEYS, of_document, strict=True):
            expected = detect_direct(watermark, prf_key, tokens, phase=phase)
            assert (evidence.log10_p, evidence.z) == (expected.log10_p, expected.z)
            assert (evidence.phase, evidence.hypotheses) == (expected.phase, expected.hypotheses)
            np.testing.assert_array_equal(evidence.starts, expected.starts)
            np.testing.assert_array_equal(evidence.scores, expected.scores)
