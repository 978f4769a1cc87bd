"""Texts that are stitched from answers under a pool: on how many of its keys they fire, and genuine ones."""

import numpy as np
import pytest

from tests.unit.detect.held_keys import under
from tests.unit.detect.simulated_texts import written
from ttmark.detect_service.detectors import likelihood
from ttmark.detect_service.paper_detectors import direct, localized
from ttmark.shared.watermark import Watermark

POOL, CHOICES, BLOCKS = 16, 4, 100
LOG10_FPR = -3.0


def fired(mode, watermark, pool, documents):
    """How many keys of the pool each document fires on, at any boundary."""
    detectors = {
        "direct": lambda: direct("any", LOG10_FPR),
        "localized": lambda: localized("scan", LOG10_FPR),
        "likelihood": lambda: likelihood(LOG10_FPR, b"", lambda _: None),
    }
    return np.array([len(under(detectors[mode](), watermark, pool, one).fired) for one in documents])


def stitched(generator, answers, tokens, run):
    """Runs of `run` tokens, each from anywhere in any answer, until there are `tokens`."""
    pieces = []
    for _ in range(tokens // run):
        answer = answers[generator.integers(len(answers))]
        start = generator.integers(len(answer) - run)
        pieces.append(answer[start : start + run])
    return np.concatenate(pieces)


def count(mode, scheme, texts, run, tokens):
    """Genuine texts of 200 tokens that fire on one and on several keys, and the same of forgeries."""
    generator = np.random.default_rng(run)
    watermark = Watermark(scheme, 2, 2)
    pool = [generator.bytes(16) for _ in range(POOL)]
    answers = written(watermark, [pool[i] for i in generator.integers(POOL, size=texts)], BLOCKS, CHOICES)
    forgeries = [stitched(generator, answers, tokens, run) for _ in range(texts)]
    found = [fired(mode, watermark, pool, documents) for documents in (answers, forgeries)]
    return [int(number) for each in found for number in ((each == 1).sum(), (each > 1).sum())]


@pytest.mark.parametrize(("mode", "texts", "tokens"), [("direct", 200, 200), ("localized", 60, 400)])
def test_a_genuine_text_fires_on_one_key_and_a_forgery_on_several_where_passages_are_told_apart(
    mode, texts, tokens
):
    """In direct detection each key of a stitched text is hidden by the others: few of them come through."""
    one, several, forged_one, forged_several = count(mode, "gumbel", texts, 66, tokens)
    assert one + several == texts
    assert several <= texts // 30  # each fires on a second key with a probability below 1e-3
    assert forged_several > 0
    assert (forged_several > forged_one) == (mode == "localized")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "localized", "likelihood"])
@pytest.mark.parametrize("scheme", ["gumbel", "synthid"])
@pytest.mark.parametrize("run", [20, 66])
@pytest.mark.parametrize("tokens", [200, 800, 3_200])
def test_how_many_forgeries_that_fire_do_so_on_several_keys(mode, scheme, run, tokens):
    one, several, forged_one, forged_several = count(mode, scheme, 1_000, run, tokens)
    print(
        f"{mode}, {scheme}, {tokens} of {run}: genuine {one} + {several},"
        f" forged {forged_one} + {forged_several}"
    )
    assert several <= 5
