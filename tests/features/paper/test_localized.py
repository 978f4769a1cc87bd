"""Localized detection: spans in longer documents, E-values, odd inputs."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.detectors.localized import detect_localized
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

KEY, OTHER_KEY = bytes(range(16)), bytes(range(1, 17))
WITHOUT_TABLE = Watermark("synthid", 2, parameters={"depth": 7})


def document(*spans, length=2000):
    """Tokens that no key made, with watermarked (start, tokens) spans written over them."""
    tokens = np.random.default_rng(0).integers(1000, 2000, length)
    for start, span in spans:
        tokens[start : start + len(span)] = span
    return tokens


def overlap(segment, start, end):
    """Intersection over union of a segment and the true span."""
    shared = max(0, min(segment.end, end) - max(segment.start, start))
    return shared / (max(segment.end, end) - min(segment.start, start))


@pytest.mark.parametrize("scheme", scheme_names())
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_scan_finds_two_spans_where_they_are(generate, scheme, block_size):
    watermark = Watermark(scheme, block_size)
    spans = [(301, generate(watermark, KEY, 150, 1)), (1200, generate(watermark, KEY, 300, 2))]
    evidence = detect_localized(watermark, KEY, document(*spans))
    assert len(evidence.segments) == 2
    for start, span in spans:
        assert max(overlap(segment, start, start + len(span)) for segment in evidence.segments) > 0.85
    assert evidence.log10_p <= evidence.segments[0].log10_e <= evidence.segments[1].log10_e <= -2


@pytest.mark.parametrize("method", ["scan", "waterseeker"])
def test_a_span_is_found_under_its_key_alone(generate, method):
    watermark = Watermark("mcmark", 2)
    text = document((701, generate(watermark, KEY, 300, 1)))
    found = detect_localized(watermark, KEY, text, method=method)
    assert overlap(found.segments[0], 701, 1001) > 0.8
    evidence = detect_localized(watermark, OTHER_KEY, text, method=method)
    assert evidence.segments == ()
    assert evidence.log10_p > -3


@pytest.mark.parametrize("method", ["scan", "waterseeker"])
@pytest.mark.parametrize("tokens", [[], [1], [1] * 5, [1] * 6, [1] * 60, list(range(120))])
def test_short_and_constant_texts_are_no_evidence(method, tokens):
    evidence = detect_localized(Watermark("synthid", 2), KEY, tokens, method=method)
    assert evidence.segments == ()
    assert evidence.log10_p > -3


@pytest.mark.parametrize("method", ["scan", "waterseeker"])
def test_a_distribution_without_a_table_falls_back_to_decoys(generate, method):
    text = document((101, generate(WITHOUT_TABLE, KEY, 200, 1)), length=400)
    evidence = detect_localized(WITHOUT_TABLE, KEY, text, method=method)
    assert evidence.log10_p == pytest.approx(-math.log10(1001))
    assert evidence.segments[0].log10_e == pytest.approx(-3.0, abs=0.01)


@pytest.mark.parametrize("method", ["scan", "waterseeker"])
@pytest.mark.parametrize("length", [40, 99])
def test_a_short_watermarked_text_is_found(generate, method, length):
    watermark = Watermark("gumbel", 2)
    tokens = generate(watermark, KEY, length, 1)
    evidence = detect_localized(watermark, KEY, tokens, method=method)
    assert evidence.log10_p < -4
    assert overlap(evidence.segments[0], 0, len(tokens)) > 0.7
    assert detect_localized(watermark, OTHER_KEY, tokens, method=method).log10_p > -3


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("limit", "several"), [(-200.0, False), (0.5, True), (math.inf, True)])
def test_the_limit_chooses_which_segments_are_reported(generate, limit, several):
    watermark = Watermark("synthid", 2)
    text = document((301, generate(watermark, KEY, 150, 1)))
    evidence = detect_localized(watermark, KEY, text, log10_e_limit=limit)
    assert evidence.log10_p < -10
    assert len(evidence.segments) > 1 if several else evidence.segments == ()
    assert all(each.end > each.start and each.log10_e <= limit for each in evidence.segments)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method must be one of scan, waterseeker"):
        detect_localized(Watermark("synthid", 2), KEY, [1], method="magic")
