"""A document is too short for a verdict where the correction leaves nothing possible, or nothing usual."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.detect_service.held_keys import held
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.verdict import (
    Decision,
    DocumentFinding,
    KeyVersion,
    Reach,
    Tokens,
    best_finding,
    best_reading,
    decide,
)
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.watermark.detectors.block_scores import BlockRows, detect_direct
from ttmark.shared.watermark.schemes.watermark import Watermark

# More than any typical length that was measured: what is possible decides.
BLOCKS = 400
LONGEST = 184
CONTEXT = 4


def key(name: str, block_size: int) -> UnlockedKey:
    """A key whose blocks have one fair bit each: N of them reach 2^-N and no less."""
    watermark = Watermark("synthid", block_size, CONTEXT, {"depth": 1})
    return held(watermark, [name.encode().ljust(16)], key_id=name)


def looked(versions: Sequence[KeyVersion], tokens: Tokens, _: object) -> list[DocumentFinding]:
    """What the first key of each version finds at the best boundary of blocks."""
    found = []
    for key, version in versions:
        watermark = key.profile.watermark()
        one = detect_direct(watermark, version.prf_key, tokens, phase="any")
        blocks = BlockRows.at_phase(watermark, tokens, 0).count
        counts = (one.hypotheses, (Reach(watermark, blocks, one.hypotheses),), one.log10_p)
        found.append(DocumentFinding(key, version, 0, (), one, one.log10_p, *counts))
    return found


def finding(keys: list[UnlockedKey], tokens: Tokens) -> DocumentFinding:
    return best_finding(lambda _: tokens, KeySelection.of(keys).tries, looked)


@pytest.fixture
def tokens() -> Tokens:
    return np.random.default_rng(2).integers(0, 1000, size=BLOCKS + CONTEXT)


def test_a_key_that_could_have_been_found_makes_a_text_long_enough(tokens: Tokens) -> None:
    # Two keys with one and two phases: the p-values of the first are multiplied by 2, not by 3.
    found = finding([key("one", 1), key("two", 2)], tokens)
    assert found.hypotheses == 3
    assert decide(found, 2.5 * 2.0**-BLOCKS) == Decision("not_detected", None)
    assert decide(found, 1.9 * 2.0**-BLOCKS) == Decision("too_short", BLOCKS + CONTEXT + 1, LONGEST)


def test_a_key_that_could_not_have_been_found_is_corrected_for_its_own_phases(tokens: Tokens) -> None:
    # Half as many blocks at either phase; their p-values are multiplied by 2.
    found = finding([key("two", 2)], tokens)
    assert decide(found, 2.1 * 2.0 ** -(BLOCKS // 2)).verdict == "not_detected"
    assert decide(found, 1.9 * 2.0 ** -(BLOCKS // 2)) == Decision("too_short", BLOCKS + CONTEXT + 2, LONGEST)


def test_a_second_reading_is_part_of_the_correction(tokens: Tokens) -> None:
    found = finding([key("one", 1)], tokens)
    assert decide(found, 1.5 * 2.0**-BLOCKS).verdict == "not_detected"
    _, both = best_reading([found, found], [0.5, 0.5], 1e-2)
    assert decide(both, 1.5 * 2.0**-BLOCKS).verdict == "too_short"
    assert decide(both, 2.1 * 2.0**-BLOCKS).verdict == "not_detected"


@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.5), (0.75, 0.25), (0.5, 0.25, 0.25)])
@pytest.mark.parametrize("fpr", [1e-1, 1e-2, 1e-3])
def test_the_parts_of_the_rate_that_readings_have_are_the_rate(tokens, weights, fpr) -> None:
    found, parts = finding([key("one", 1)], tokens), []
    for own in range(len(weights)):

        def is_alarm(p: float, own: int = own) -> bool:
            of_readings = [replace(found, log10_p=0.0)] * len(weights)
            of_readings[own] = replace(found, log10_p=math.log10(p))
            _, best = best_reading(of_readings, weights, fpr)
            return decide(best, fpr).verdict == "watermarked"

        # Uniform p-values alarm with the chance of the largest that does.
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if is_alarm(middle) else (low, middle)
        parts.append(low)
    assert parts == pytest.approx([weight * fpr for weight in weights])
    assert sum(parts) == pytest.approx(fpr)


def gumbel_pairs(keys: int) -> list[UnlockedKey]:
    """Keys under which one block can reach any usual rate."""
    return [held(Watermark("gumbel", 2, 2), [bytes(16)], key_id=f"key-{n}") for n in range(keys)]


# Two phases, so 1e-3 takes p = 5e-4 of a boundary: four decades. Eight keys: five.
@pytest.mark.parametrize(("keys", "fpr", "typical"), [(1, 1e-3, 60), (8, 1e-3, 71), (1, 1e-30, 196)])
def test_a_text_is_too_short_where_half_of_marked_texts_are_not_found(keys, fpr, typical):
    tokens = np.random.default_rng(3).integers(0, 1000, size=typical)
    shorter = decide(finding(gumbel_pairs(keys), tokens[: typical // 2 * 2 - 1]), fpr)
    assert (shorter.verdict, shorter.tokens_typical) == ("too_short", typical)
    assert shorter.tokens_needed < typical // 3
    assert decide(finding(gumbel_pairs(keys), tokens), fpr) == Decision("not_detected", None)


def test_one_key_that_reads_enough_is_enough(tokens: Tokens) -> None:
    """Single fair bits were not measured and count as what needs the fewest; pairs need 60 tokens."""
    both = finding([key("one", 1), *gumbel_pairs(1)], tokens[:100])
    assert decide(both, 1e-3).verdict == "not_detected"
