"""Peers under the same workload: transformers' `generate`, also with SynthID."""

from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, SynthIDTextWatermarkingConfig

from ttmark.evaluation.bench.workload import Measurement, Stopwatch, Workload
from ttmark.shared.tokenization import TextTokenizer

_SYNTHID_KEYS = list(range(1, 31))  # depth 30, as ours


class Transformers:
    """A model as `AutoModelForCausalLM` loads it, with transformers' own attention."""

    def __init__(self, model: str, dtype: str) -> None:
        self._tokenizer = TextTokenizer.load(model)
        self._model: Any = AutoModelForCausalLM.from_pretrained(model, dtype=dtype).eval()

    def generate(self, workload: Workload, *, synthid: bool) -> Measurement:
        """One call of `generate` on all prompts, which are of equal length and need no padding."""
        watermarking = SynthIDTextWatermarkingConfig(keys=_SYNTHID_KEYS, ngram_len=5) if synthid else None
        config = GenerationConfig(
            max_new_tokens=workload.tokens,
            min_new_tokens=workload.tokens,
            do_sample=True,
            top_k=workload.filters.top_k,
            top_p=workload.filters.top_p,
            temperature=workload.filters.temperature,
            repetition_penalty=1.0,  # what is not named is taken from the model's own configuration
            eos_token_id=None,
            pad_token_id=0,
            watermarking_config=watermarking,
        )
        prompts = torch.tensor(workload.prompts(self._tokenizer))
        torch.manual_seed(0)
        watch = Stopwatch()
        with torch.inference_mode():
            made = self._model.generate(
                prompts, attention_mask=torch.ones_like(prompts), generation_config=config
            )
        rates = watch.rates(int(made.shape[0] * (made.shape[1] - workload.prompt_tokens)))
        return Measurement(f"transformers generate{', SynthID' if synthid else ''}", workload, rates)
