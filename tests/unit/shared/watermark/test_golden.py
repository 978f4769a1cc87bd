"""Golden vectors: what the watermark does must not change unnoticed, and follows from the specification."""

import json

import pytest

from tests.harness.golden import GOLDEN, approximately, golden_vectors
from tests.harness.spec_detector.prf import siphash_2_4_128
from tests.harness.spec_detector.scheme import Scheme

FILE = json.loads((GOLDEN / "watermark.json").read_text())


def test_golden_vectors_are_reproduced():
    assert golden_vectors() == approximately(FILE["watermarks"])


def test_scores_follow_from_the_specification_alone():
    key = bytes.fromhex(FILE["key"])
    for record in FILE["watermarks"]:
        scheme, context = Scheme(record), tuple(record["context"])
        message = b"".join(token.to_bytes(4, "little") for token in context)
        assert siphash_2_4_128(key, message).hex() == record["context_words"]
        found = [scheme.score(key, context, tuple(block), 0) for block in record["blocks"]]
        assert found == pytest.approx(record["scores"], abs=1e-12)
