"""Texts that transformers writes with its own generator, judged by its own detector and by ours."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    SynthIDTextWatermarkingConfig,
    SynthIDTextWatermarkLogitsProcessor,
    WatermarkDetector,
    WatermarkingConfig,
)

from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

VOCABULARY, TOKENS, PROMPT = 1_000, 60, 4
LAYERS = list(range(1000, 1020))


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.4,
        bos_token_id=0,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def written(model: LlamaForCausalLM, config: Any, texts: int) -> torch.Tensor:
    """Completions [texts, tokens] of the original generator."""
    torch.manual_seed(2)
    prompts = torch.randint(0, VOCABULARY, (texts, PROMPT))
    length = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": True, "top_k": 40}
    generated = model.generate(prompts, watermarking_config=config, pad_token_id=0, **length)
    assert isinstance(generated, torch.Tensor)
    return generated[:, PROMPT:]


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        ({}, 5),
        ({"greenlist_ratio": 0.5, "hashing_key": 12_345}, 5),
        ({"seeding_scheme": "selfhash", "hashing_key": 99_991}, 2),
        pytest.param({"hashing_key": 918_273}, 100, marks=pytest.mark.slow),
    ],
)
def test_green_lists_have_the_score_of_the_original_detector(
    model: LlamaForCausalLM, arguments: dict[str, Any], number: int
) -> None:
    config = WatermarkingConfig(bias=4.0, **arguments)
    texts = written(model, config, number)
    texts = texts[(texts[:, :-1] != 0).all(dim=1)]  # what follows token 0 is green or not under every key
    assert len(texts) > 0.8 * number
    said = WatermarkDetector(model.config, "cpu", config, ignore_repeated_ngrams=True)(
        texts, return_dict=True
    )
    scheme = FOREIGN_SCHEMES["kgw"]
    mark = scheme.mark(*scheme.split({**config.to_dict(), "vocab_size": VOCABULARY}))
    found = [mark.detect(text) for text in texts.tolist()]
    assert [one.score for one in found] == said.num_green_tokens.tolist()
    assert [one.scored_tokens for one in found] == said.num_tokens_scored.tolist()
    assert np.median([one.log10_p for one in found]) < -5


@pytest.mark.parametrize(
    ("number", "table"), [(15, 1 << 11), pytest.param(100, 1 << 16, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("ngram_len", [2, 5])
def test_synthid_text_has_the_scores_of_the_original(
    model: LlamaForCausalLM, number: int, table: int, ngram_len: int
) -> None:
    """Of fewer texts with a smaller table, so that some hashes are at one place of it."""
    config = SynthIDTextWatermarkingConfig(ngram_len=ngram_len, keys=LAYERS, sampling_table_size=table)
    texts = written(model, config, number)
    processor = SynthIDTextWatermarkLogitsProcessor(
        **{name: value for name, value in config.to_dict().items() if name != "debug_mode"}, device="cpu"
    )
    fresh, bits = processor.compute_context_repetition_mask(texts), processor.compute_g_values(texts)
    hashes = processor.compute_ngram_keys(texts.unfold(1, config.ngram_len, 1))[..., 0]
    places = hashes % config.sampling_table_size  # two hashes at one place of the table are one draw
    scheme = FOREIGN_SCHEMES["synthid-text"]
    mark = scheme.mark(*scheme.split(config.to_dict()))
    found = [mark.detect(text) for text in texts.tolist()]
    differing = 0
    for text, one, of_text, at, new in zip(texts.tolist(), found, bits, places, fresh, strict=True):
        rows = of_text[new.bool()].tolist()
        # The original counts equal draws again.
        drawn = list(dict(zip(at[new.bool()].tolist(), rows, strict=True)).values())
        differing += len(drawn) < len(rows)
        assert mark.read(np.array(text)).bits.tolist() == drawn
        assert one.scored_tokens == len(drawn)
        assert one.score == pytest.approx(np.mean(drawn))
    assert differing > 0
    assert np.median([one.log10_p for one in found]) < -5
