"""Texts that are stitched from answers under a pool: on how many of its keys they fire, and genuine ones."""

import numpy as np
import pytest

from tests.unit.detect.simulated_texts import written
from ttmark.detect_service.direct_detector import direct
from ttmark.shared.watermark import Watermark

POOL, CHOICES, BLOCKS = 16, 4, 100
LOG10_FPR = -3.0


def fired(watermark, pool, documents):
    """How many keys of the pool each document fires on, at any boundary."""
    detector = direct(["any"] * len(documents), LOG10_FPR)
    return np.array([len(one.fired) for (one,) in detector(watermark, [pool], documents)])


def stitched(generator, answers, tokens, run):
    """Runs of `run` tokens, each from anywhere in any answer, until there are `tokens`."""
    pieces = []
    for _ in range(tokens // run):
        answer = answers[generator.integers(len(answers))]
        start = generator.integers(len(answer) - run)
        pieces.append(answer[start : start + run])
    return np.concatenate(pieces)


def count(scheme, texts, run, tokens):
    """Genuine texts of 200 tokens that fire on one and on several keys, and the same of forgeries."""
    generator = np.random.default_rng(run)
    watermark = Watermark(scheme, 2, 2)
    pool = [generator.bytes(16) for _ in range(POOL)]
    answers = written(watermark, [pool[i] for i in generator.integers(POOL, size=texts)], BLOCKS, CHOICES)
    forgeries = [stitched(generator, answers, tokens, run) for _ in range(texts)]
    found = fired(watermark, pool, answers), fired(watermark, pool, forgeries)
    return [int(number) for each in found for number in ((each == 1).sum(), (each > 1).sum())]


def test_a_genuine_text_fires_on_one_key_and_a_forgery_on_less_than_it_holds():
    """Each key of a stitched text is hidden by the others: in direct detection few of them come through."""
    one, several, forged_one, forged_several = count("gumbel", 200, 66, 200)
    assert one + several == 200
    assert several <= 4  # each fires on a second key with a probability below 1e-3
    assert 0 < forged_several < forged_one


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["gumbel", "synthid"])
@pytest.mark.parametrize("run", [20, 66])
@pytest.mark.parametrize("tokens", [200, 800, 3_200])
def test_how_many_forgeries_that_fire_do_so_on_several_keys(scheme, run, tokens):
    one, several, forged_one, forged_several = count(scheme, 1_000, run, tokens)
    print(f"{scheme}, {tokens} of {run}: genuine {one} + {several}, forged {forged_one} + {forged_several}")
    assert several <= 5
