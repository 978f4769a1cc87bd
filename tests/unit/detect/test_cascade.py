"""Two steps, without a reader and with one, share the rate of one question."""

import numpy as np
import pytest

from tests.unit.detect.held_keys import held
from ttmark.detect_service.cascade import may_be_read, with_reading, without_reading
from ttmark.detect_service.verdict import Finding, Reach, decide
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.likelihood.evidence import LikelihoodEvidence

TRIALS = 2_000
KEYS = 16
WATERMARK = Watermark("gumbel", 2)
KEY = held(WATERMARK, [bytes(16)])


def finding(log10_p: float = 0.0, log10_e: float | None = 0.0, best_log10_e: float = 0.0) -> Finding:
    """Of one version with a pool of 16 keys."""
    of_keys = np.array([best_log10_e, *[-1.0] * (KEYS - 1)])
    return Finding(
        key=KEY,
        version=KEY.versions[0],
        pool_key=0,
        fired=(),
        evidence=LikelihoodEvidence(of_keys, np.full(KEYS, log10_p), 100, 100, 0),
        log10_p=log10_p,
        log10_e=log10_e,
        hypotheses=KEYS,
        reach=(Reach(WATERMARK, 100, KEYS),),
        null_log10_p=0.0,
    )


@pytest.mark.parametrize("rate", [0.1, 0.01])
@pytest.mark.parametrize("wanted", ["auto", "always"])
def test_however_the_steps_hang_together_what_is_found_keeps_to_the_rate(rate: float, wanted) -> None:
    """p-values of both steps are uniform: alike, independent, or one small where the other is large."""
    chance = np.random.default_rng(1)
    first = chance.random(TRIALS)
    for second in (first, 1.0 - first, chance.random(first.size)):
        found = 0
        for p1, p2 in zip(np.log10(first).tolist(), np.log10(second).tolist(), strict=True):
            one = finding(p1, best_log10_e=-p1)
            read = may_be_read(one, rate, wanted)
            both = with_reading(one, finding(p2)) if read else without_reading(one)
            found += decide(both, rate).verdict == "watermarked"
        assert found <= rate * first.size + 4 * np.sqrt(rate * first.size)


def test_what_is_found_without_reading_is_not_read_and_what_nothing_speaks_for_neither() -> None:
    likely, unlikely = 3.0, 0.5
    assert may_be_read(finding(-5.9, best_log10_e=likely), 1e-5, "auto")
    assert not may_be_read(finding(-6.0, best_log10_e=likely), 1e-5, "auto")
    assert not may_be_read(finding(-0.1, best_log10_e=unlikely), 1e-5, "auto")
    for one in (finding(-9.0, best_log10_e=9.0), finding(), finding(-5.9, best_log10_e=likely)):
        assert may_be_read(one, 1e-5, "always")
        assert not may_be_read(one, 1e-5, "never")
