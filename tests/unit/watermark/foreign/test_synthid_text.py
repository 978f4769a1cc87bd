"""`SynthIdText` against transformers' own processor."""

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import SynthIDTextWatermarkLogitsProcessor

from ttmark.shared.watermark.foreign import SynthIdText

KEYS = tuple(range(100, 120))
VOCABULARY = 500


def original(ngram_len: int = 5, keys: tuple[int, ...] = KEYS) -> SynthIDTextWatermarkLogitsProcessor:
    return SynthIDTextWatermarkLogitsProcessor(
        ngram_len,
        list(keys),
        sampling_table_size=1 << 16,
        sampling_table_seed=0,
        context_history_size=1024,
        device="cpu",
    )


def written(ngram_len: int, seed: int, length: int) -> list[int]:
    processor, sampling = original(ngram_len), torch.Generator().manual_seed(seed)
    ids = torch.tensor([[1, 2, 3, 4, 5, 6]])
    for _ in range(length):
        spread = torch.Generator().manual_seed(int(ids[0, -1]) % 9)
        logits = 2 * torch.randn(1, VOCABULARY, generator=spread)
        logits = logits.masked_fill(logits < logits.topk(6).values[:, -1:], -1e4)
        chosen = torch.multinomial(processor(ids, logits).softmax(-1), 1, generator=sampling)
        ids = torch.cat([ids, chosen], 1)
    return [int(token) for token in ids[0, 6:]]


@pytest.mark.parametrize("ngram_len", [2, 5])
def test_bits_are_those_of_the_original(ngram_len: int) -> None:
    mark, found = SynthIdText(KEYS, ngram_len), []
    for seed in range(10):
        tokens = written(ngram_len, seed, 60)
        processor, ids = original(ngram_len), torch.tensor([tokens])
        bits = processor.compute_g_values(ids)[0]
        fresh = processor.compute_context_repetition_mask(ids)[0]
        ngrams = np.lib.stride_tricks.sliding_window_view(np.array(tokens), ngram_len)
        assert (mark.bits(mark.places(ngrams)) == bits.numpy()).all()
        said = mark.detect(tokens)
        assert said.scored_tokens == int(fresh.sum())  # no two of these hash alike
        assert said.score == pytest.approx(float(bits[fresh].double().mean()))
        found.append(said.log10_p)
    assert np.median(found) < (-2 if ngram_len == 2 else -3)


def test_the_null_is_that_of_random_keys() -> None:
    generator = np.random.default_rng(1)
    text, layers = generator.integers(0, VOCABULARY, 120), 4
    keys = generator.integers(-(1 << 62), 1 << 62, size=(400, layers)).tolist()
    found = np.array([10 ** SynthIdText(tuple(each)).detect(text).log10_p for each in keys])
    for rate in (0.05, 0.2, 0.5):
        share = (found <= rate).mean()
        assert rate * 0.8 - 4 * np.sqrt(rate / found.size) < share < rate + 4 * np.sqrt(rate / found.size)


def test_repeats_do_not_count() -> None:
    text = list(range(20)) * 10
    assert SynthIdText(KEYS).detect(text).scored_tokens == 20
    assert SynthIdText(KEYS).detect([1, 2]).scored_tokens == 0


def test_bad_arguments_are_named() -> None:
    for arguments, words in [
        ({"keys": ()}, "keys"),
        ({"keys": (1 << 63,)}, "64 bits"),
        ({"ngram_len": 1}, "ngram_len"),
        ({"sampling_table_size": 1000}, "power of two"),
    ]:
        with pytest.raises(ValueError, match=words):
            SynthIdText(**{"keys": KEYS, **arguments})  # type: ignore[arg-type]
