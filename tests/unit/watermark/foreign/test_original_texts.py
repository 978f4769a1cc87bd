"""100 texts that transformers writes with its own generator, judged by its own detector and by ours."""

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

VOCABULARY, TEXTS, TOKENS, PROMPT = 1_000, 100, 60, 4
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


def written(model: LlamaForCausalLM, config: Any) -> torch.Tensor:
    """Completions [texts, tokens] of the original generator."""
    torch.manual_seed(2)
    prompts = torch.randint(0, VOCABULARY, (TEXTS, PROMPT))
    length = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": True, "top_k": 40}
    generated = model.generate(prompts, watermarking_config=config, pad_token_id=0, **length)
    assert isinstance(generated, torch.Tensor)
    return generated[:, PROMPT:]


def test_green_lists_have_the_score_of_the_original_detector(model: LlamaForCausalLM) -> None:
    arguments: dict[str, Any] = {"bias": 3.0, "hashing_key": 918_273, "greenlist_ratio": 0.25}
    config = WatermarkingConfig(**arguments)
    texts = written(model, config)
    said = WatermarkDetector(model.config, "cpu", config, ignore_repeated_ngrams=True)(
        texts, return_dict=True
    )
    scheme = FOREIGN_SCHEMES["kgw"]
    mark = scheme.mark(*scheme.split({**config.to_dict(), "vocab_size": VOCABULARY}))
    found = [mark.detect(text) for text in texts.tolist()]
    assert [one.score for one in found] == said.num_green_tokens.tolist()
    assert [one.scored_tokens for one in found] == said.num_tokens_scored.tolist()
    assert np.median([one.log10_p for one in found]) < -5


def test_synthid_text_has_the_scores_of_the_original(model: LlamaForCausalLM) -> None:
    config = SynthIDTextWatermarkingConfig(ngram_len=5, keys=LAYERS)
    texts = written(model, config)
    processor = SynthIDTextWatermarkLogitsProcessor(
        **{name: value for name, value in config.to_dict().items() if name != "debug_mode"}, device="cpu"
    )
    fresh, bits = processor.compute_context_repetition_mask(texts), processor.compute_g_values(texts)
    scheme = FOREIGN_SCHEMES["synthid-text"]
    mark = scheme.mark(*scheme.split(config.to_dict()))
    found = [mark.detect(text) for text in texts.tolist()]
    differing = 0
    for one, of_text, new in zip(found, bits, fresh, strict=True):
        rows = of_text[new.bool()].tolist()
        drawn = list({tuple(row): row for row in rows}.values())  # the original counts equal hashes again
        differing += len(drawn) < len(rows)
        assert one.scored_tokens == len(drawn)
        assert one.score == pytest.approx(np.mean(drawn))
    assert differing < TEXTS
    assert np.median([one.log10_p for one in found]) < -5
