"""`VllmGumbel` and `SglangGumbel` against texts of their own generators, judged by their own detectors."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.harness import vllm_reader
from tests.harness.imports import ROOT
from ttmark.shared.watermark.detectors.block_scores import check_tokens
from ttmark.shared.watermark.foreign import ForeignMark, SglangGumbel, VllmGumbel, sglang_gumbel
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES
from ttmark.shared.watermark.foreign.sglang_gumbel import log_weighted_gamma_tail
from ttmark.shared.watermark.foreign.vllm_gumbel import philox
from ttmark.shared.watermark.nulls import LN10, log_gamma_tail


def golden(name: str) -> list[Any]:
    path = ROOT / "tests/golden" / f"{name}-gumbel.json"
    return [
        pytest.param(text, id=str(number))
        for number, text in enumerate(json.loads(path.read_text())["texts"])
    ]


@pytest.mark.parametrize("text", golden("vllm"))
def test_scores_are_those_of_vllm_s_detector(text: dict[str, Any]) -> None:
    mark = VllmGumbel(int(text["key"]), text["context_width"], text["alpha"])
    found = mark.detect(text["token_ids"])
    assert found.scored_tokens == text["scored_tokens"]
    assert found.score == pytest.approx(text["score"], rel=1e-12)
    if text["alpha"] in (None, 0.0, 0.5, 1.0):  # for others the original's p-value is an approximation
        assert found.log10_p == pytest.approx(np.log10(text["p_value"]), rel=1e-5)


# Counters, keys and outputs of Philox4x32-10 in Random123's `kat_vectors`.
PHILOX = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize("published", PHILOX)
def test_philox_gives_its_authors_published_vectors(published: tuple[str, str, str]) -> None:
    counter, key, output = ([int(word, 16) for word in words.split()] for words in published)
    a, b, c, d, low, high = (np.array([word], dtype=np.uint64) for word in (*counter, *key))
    assert [int(word[0]) for word in philox((a, b, c, d), (low, high))] == output
    assert list(vllm_reader.philox(counter, key)) == output


@pytest.mark.parametrize("width", [1, 4, 6])
def test_a_second_program_finds_the_same_draws_scores_and_p_values(width: int) -> None:
    source = np.random.default_rng(width)
    beyond_16_bits = [4_294_967_294, 200_000, 0, 151_643, 1, 65_536] * 2
    texts = [source.integers(0, 50_000, 60).tolist(), [7, 8, 9] * 6, beyond_16_bits, [5], []]
    for key in (0, 42, 1311768467463790320, 2**64 - 1):
        mark = VllmGumbel(key, width)
        for tokens in texts:
            other = vllm_reader.detect(key, width, tokens)
            text = mark.read(check_tokens(tokens))
            scores = text.keys[0].scores
            assert text.positions.tolist() == other.places
            assert np.rint(-np.expm1(-scores) * (2**24 + 1) - 1).astype(int).tolist() == other.draws
            assert scores.tolist() == pytest.approx(other.scores, abs=1e-9)
            assert mark.detect(tokens).log10_p == pytest.approx(other.log10_p, abs=1e-9)


@pytest.mark.parametrize("text", golden("sglang"))
def test_scores_and_p_values_are_those_of_sglang_s_detector(text: dict[str, Any]) -> None:
    scheme, results = FOREIGN_SCHEMES["sglang-gumbel"], ("token_ids", "score", "log_p")
    mark = scheme.mark(*scheme.split({name: text[name] for name in text.keys() - set(results)}))
    found = mark.detect(text["token_ids"])
    assert found.score == pytest.approx(text["score"], rel=1e-12)
    assert found.log10_p == pytest.approx(text["log_p"] / LN10, rel=1e-5)
    assert found.log10_p < -5


OfKeys = Callable[[int, int], ForeignMark]
OF_KEYS: dict[str, OfKeys] = {
    "vllm": lambda key, _: VllmGumbel(key),
    "vllm, two keys": lambda key, _: VllmGumbel(key, 4, 0.1),
    "sglang": lambda key, _: SglangGumbel(key, None),
    "sglang, two keys": SglangGumbel,
}


@pytest.mark.parametrize("of_keys", OF_KEYS.values(), ids=OF_KEYS.keys())
def test_p_values_of_repetitive_texts_are_uniform_over_keys(of_keys: OfKeys) -> None:
    generator = np.random.default_rng(5)
    text = np.tile(generator.integers(0, 50, 40), 8)[:300]
    keys = generator.integers(0, 1 << 63, size=(600, 2)).tolist()
    found = np.array([10 ** of_keys(*pair).detect(text).log10_p for pair in keys])
    for rate in (0.01, 0.1, 0.5):
        assert abs((found <= rate).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / found.size)


@pytest.mark.parametrize("two", [False, True])
def test_contexts_of_one_hash_are_one_draw_of_sglang_s(two: bool) -> None:
    """Pairs of contexts among a million that collide, each followed by one token."""
    contexts = np.random.default_rng(1).integers(0, 1 << 32, (1 << 20, 2))
    contexts[:, 0] %= 8
    hashed = sglang_gumbel._murmur3(list(contexts.astype(np.uint64).T), len(contexts))
    order = np.argsort(hashed, kind="stable")
    equal = np.flatnonzero(np.diff(hashed[order]) == 0)
    pairs = np.concatenate([order[equal], order[equal + 1]])
    assert len(pairs) > 150
    text = np.column_stack([contexts[pairs], np.full(len(pairs), 9)]).ravel()
    keys = np.random.default_rng(2).integers(0, 1 << 63, (1500, 2)).tolist()
    marks = [SglangGumbel(key, other if two else None, 2) for key, other in keys]
    found = np.array([10 ** mark.detect(text).log10_p for mark in marks])
    for rate in (0.01, 0.05, 0.5):
        assert abs((found <= rate).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / found.size)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7])
def test_the_tail_of_two_weighted_keys_is_exact(alpha: float) -> None:
    generator = np.random.default_rng(3)
    sums = (1 - alpha) * generator.gamma(8, size=400_000) + alpha * generator.gamma(8, size=400_000)
    for threshold in np.quantile(sums, [0.5, 0.9, 0.99, 0.999]):
        rate = float((sums >= threshold).mean())
        found = np.exp(log_weighted_gamma_tail(threshold, 8, 1 - alpha, alpha))
        assert found == pytest.approx(rate, abs=5 * np.sqrt(rate / sums.size))


def test_weights_that_are_nearly_alike_give_nearly_one_gamma_variable() -> None:
    for threshold in (5.0, 60.0, 2000.0):
        whole = log_gamma_tail(2 * threshold, 60)
        alike, nearly = (
            log_weighted_gamma_tail(threshold, 30, 0.5 + apart, 0.5 - apart) for apart in (0.0, 1e-9)
        )
        assert alike == pytest.approx(whole)
        assert nearly == pytest.approx(whole, rel=1e-5)


def test_the_first_tokens_and_short_texts_are_not_scored_and_no_key_is_shown() -> None:
    assert VllmGumbel(1).detect([]).log10_p == 0.0
    mark = SglangGumbel(1)
    assert [mark.detect(list(range(length))).scored_tokens for length in (0, 4, 5, 9)] == [0, 0, 1, 5]
    for shown in (repr(VllmGumbel(987654321)), repr(SglangGumbel(987654321, 987654321))):
        assert "987654321" not in shown


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        (VllmGumbel, (-1,), "64"),
        (VllmGumbel, (1, 0), "context width"),
        (VllmGumbel, (1, 4, 0.001), "alpha"),
        (SglangGumbel, (-1,), "hexadecimal"),
        (SglangGumbel, (1, None, 65), "window"),
        (SglangGumbel, (1, 2, 4, 1.0), "mixing"),
    ],
)
def test_bad_arguments_are_named(kind: Any, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(*arguments)
