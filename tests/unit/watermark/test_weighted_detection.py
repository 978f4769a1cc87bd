"""Detection with weights: p-values that do not depend on them, and weights that find more."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark import Watermark, detect_direct, key_lanes
from ttmark.shared.watermark.detectors.weighted import block_weights, detect_weighted

KEY = bytes(range(16))


def keys(count: int) -> list[bytes]:
    generator = np.random.default_rng(7)
    return [generator.bytes(16) for _ in range(count)]


def written(watermark: Watermark, blocks: int, seed: int) -> tuple[list[int], np.ndarray]:
    """A text whose blocks are nearly certain or open in turn, and the probability of each token."""
    generator = np.random.default_rng(seed)
    size, width = watermark.block_size, watermark.context_width
    tokens: list[int] = generator.integers(1000, size=width + (-width) % size).tolist()
    probs = [1.0] * len(tokens)
    for _ in range(blocks):
        candidates = 16 if generator.random() < 0.3 else 2
        rest = 1.0 if candidates == 16 else 0.02
        p = np.full(candidates, rest / candidates) + np.eye(candidates)[0] * (1.0 - rest)
        ids = generator.choice(1000, size=(candidates, size), replace=False)
        context = np.array([tokens[-width:]])
        marked = watermark.reweight(key_lanes(KEY)[None], context, ids, p, np.array([0, candidates]))
        chosen = generator.choice(candidates, p=marked / marked.sum())
        tokens += ids[chosen].tolist()
        probs += [float(p[chosen]), *([1.0] * (size - 1))]
    return tokens, np.array(probs)


@pytest.mark.parametrize("scheme", ["synthid", "gumbel", "mcmark", "dipmark"])
def test_weights_by_the_model_raise_z_on_texts_of_uneven_entropy(scheme: str) -> None:
    watermark = Watermark(scheme, 2)
    found = [detect_weighted(watermark, [KEY], *written(watermark, 80, seed)) for seed in range(4)]
    weighted = np.mean([each.weighted.z for each in found])
    assert weighted > 1.25 * np.mean([each.unweighted.z for each in found])
    assert np.mean([each.weighted.log10_p for each in found]) < np.mean(
        [each.unweighted.log10_p for each in found]
    )


@pytest.mark.parametrize("scheme", ["synthid", "gumbel"])
def test_under_other_keys_small_p_values_are_as_rare_as_they_say(scheme: str) -> None:
    watermark = Watermark(scheme, 2)
    tokens, probs = written(watermark, 60, seed=3)
    log10_p = np.array(
        [detect_weighted(watermark, [key], tokens, probs).weighted.log10_p for key in keys(200)]
    )
    for level in (0.3, 0.1, 0.02):
        share = float(np.mean(log10_p <= math.log10(level)))
        assert share < level + 4 * math.sqrt(level * (1 - level) / log10_p.size)
    assert np.mean(log10_p <= math.log10(0.3)) > 0.2


def test_the_unweighted_evidence_is_that_of_direct_detection() -> None:
    watermark = Watermark("synthid", 2)
    tokens, probs = written(watermark, 80, seed=1)
    found = detect_weighted(watermark, [KEY], tokens, probs)
    direct = detect_direct(watermark, KEY, tokens)
    assert (found.unweighted.log10_p, found.unweighted.z) == (direct.log10_p, pytest.approx(direct.z))
    assert found.scored_blocks == direct.scored_blocks


def test_of_a_pool_and_all_phases_the_right_one_is_found_and_all_are_paid_for() -> None:
    watermark = Watermark("gumbel", 2)
    tokens, probs = written(watermark, 80, seed=2)
    alone = detect_weighted(watermark, [KEY], tokens, probs)
    pool = keys(15)
    found = detect_weighted(watermark, [*pool, KEY], [5, *tokens], np.array([1.0, *probs]), phases=range(2))
    assert (found.pool_key, found.phase, found.hypotheses) == (15, 1, 32)
    assert found.weighted.log10_p == pytest.approx(alone.weighted.log10_p + math.log10(32), abs=1e-6)


def test_what_the_model_had_no_choice_at_counts_for_nothing() -> None:
    watermark = Watermark("gumbel", 1)
    tokens, probs = written(watermark, 50, seed=2)
    found = detect_weighted(watermark, [KEY], tokens, np.ones_like(probs))
    assert (found.weighted.log10_p, found.weighted.z, found.weighted_blocks) == (0.0, 0.0, 0)
    assert found.scored_blocks > 40


def test_another_number_of_probabilities_than_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="3 probabilities for 2 tokens"):
        detect_weighted(Watermark("gumbel", 1), [KEY], [1, 2], np.ones(3))


def test_a_block_that_the_model_would_not_have_written_counts_as_a_rare_one() -> None:
    watermark = Watermark("gumbel", 1)
    weights = block_weights(watermark, np.array([0.0, 1e-9, 0.01, 0.1, 0.5, 1.0]))
    assert weights.tolist()[:3] == [32, 32, 32]
    assert sorted(weights.tolist(), reverse=True) == weights.tolist()
    assert weights[-1] == 0


@pytest.mark.parametrize(
    ("scheme", "parameters", "tolerance"),
    [
        ("gumbel", {}, 0.06),
        ("gumbel", {"blend": 0.5}, 0.06),
        ("synthid", {}, 0.15),
        ("synthid", {"depth": 4}, 0.06),
        ("synthid", {"depth": 6, "weighted": True}, 0.08),
        ("dipmark", {}, 0.25),
        ("mcmark", {}, 0.45),
    ],
)
def test_the_gain_that_a_scheme_expects_is_about_the_gain_of_emitted_blocks(
    scheme: str, parameters: dict[str, float], tolerance: float
) -> None:
    """By emission from the scheme itself: one block of probability p beside nine that share the rest."""
    watermark = Watermark(scheme, 1, parameters=parameters)
    generator = np.random.default_rng(5)
    texts, others = 3_000, 9
    for p in (0.1, 0.4, 0.8):
        contexts = generator.integers(2**31, size=(texts, watermark.context_width))
        blocks = np.tile(np.arange(1 + others)[:, None], (texts, 1))
        probs = np.tile([p, *[(1 - p) / others] * others], texts)
        offsets = np.arange(texts + 1) * (1 + others)
        lanes = np.tile(key_lanes(KEY), (texts, 1))
        marked = watermark.reweight(lanes, contexts, blocks, probs, offsets).reshape(texts, -1)[:, 0]
        scores = watermark.score(key_lanes(KEY), contexts, np.zeros((texts, 1), dtype=np.int64))
        observed = float(np.mean(marked / p * (scores - watermark.null.mean)))
        expected = float(watermark.expected_gain(np.array([p]))[0])
        most = float(watermark.expected_gain(np.array([0.1]))[0])
        assert abs(observed - expected) < tolerance * most
