"""Peers under the same workload: transformers' `generate`, with SynthID, continuous batching."""

import multiprocessing
from queue import Empty
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    ContinuousBatchingConfig,
    GenerationConfig,
    SynthIDTextWatermarkingConfig,
)

from ttmark.evaluation.bench.workload import Measurement, Stopwatch, Workload
from ttmark.shared.tokenization import TextTokenizer

CONTINUOUS_BATCHING = "transformers continuous batching"
_PAGE = 64  # tokens of a page of the cache of continuous batching
_SYNTHID_KEYS = list(range(1, 31))  # depth 30, as ours


class Transformers:
    """A model as `AutoModelForCausalLM` loads it, with transformers' own attention."""

    def __init__(self, model: str, dtype: str) -> None:
        self._tokenizer = TextTokenizer.load(model)
        self._model: Any = AutoModelForCausalLM.from_pretrained(model, dtype=dtype).eval()

    def generate(self, workload: Workload, *, synthid: bool) -> Measurement:
        """One call of `generate` on all prompts, which are of equal length and need no padding."""
        watermarking = SynthIDTextWatermarkingConfig(keys=_SYNTHID_KEYS, ngram_len=5) if synthid else None
        config = self._config(workload, watermarking_config=watermarking)
        prompts = torch.tensor(workload.prompts(self._tokenizer))
        torch.manual_seed(0)
        watch = Stopwatch()
        with torch.inference_mode():
            made = self._model.generate(
                prompts, attention_mask=torch.ones_like(prompts), generation_config=config
            )
        rates = watch.rates(int(made.shape[0] * (made.shape[1] - workload.prompt_tokens)))
        return Measurement(f"transformers generate{', SynthID' if synthid else ''}", workload, rates)

    def continuous_batching(self, workload: Workload) -> Measurement:
        """`generate_batch`, transformers' continuous batching, with a cache as large as the workload.

        Left to itself it sizes the cache by the free memory and spends minutes on it.
        """
        prompts = workload.prompts(self._tokenizer)
        pages = -(-(workload.prompt_tokens + workload.tokens) // _PAGE) + 1
        batching = ContinuousBatchingConfig(
            page_size=_PAGE,
            num_blocks=pages * workload.sequences,
            max_batch_tokens=workload.sequences * workload.prompt_tokens,
        )
        watch = Stopwatch()
        made = self._model.generate_batch(
            inputs=prompts,
            generation_config=self._config(workload),
            continuous_batching_config=batching,
            progress_bar=False,
        )
        rates = watch.rates(sum(len(output.generated_tokens) for output in made.values()))
        return Measurement(CONTINUOUS_BATCHING, workload, rates)

    def _config(self, workload: Workload, **more: Any) -> GenerationConfig:
        return GenerationConfig(
            max_new_tokens=workload.tokens,
            min_new_tokens=workload.tokens,
            do_sample=True,
            top_k=int(workload.filters["top_k"]),
            top_p=workload.filters["top_p"],
            temperature=workload.filters["temperature"],
            repetition_penalty=1.0,  # what is not named is taken from the model's own configuration
            eos_token_id=None,
            pad_token_id=0,
            **more,
        )


def continuous_batching(
    model: str, dtype: str, threads: int | None, workload: Workload, patience_seconds: float
) -> Measurement:
    """Transformers' continuous batching in a process of its own, given up after `patience_seconds`."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_batch_in_process, args=(model, dtype, threads, workload, answers))
    process.start()
    try:
        measured: Measurement = answers.get(timeout=patience_seconds)
    except Empty:
        measured = Measurement(CONTINUOUS_BATCHING, workload, error=f"no answer in {patience_seconds:.0f} s")
    process.kill()
    process.join()
    return measured


def _batch_in_process(model: str, dtype: str, threads: int | None, workload: Workload, answers: Any) -> None:
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        peer = Transformers(model, dtype)
        peer.continuous_batching(Workload(1, 2))
        answers.put(peer.continuous_batching(workload))
    except Exception as error:  # it is young: what it cannot do here is a result too
        line = f"{type(error).__name__}: {error}".splitlines()[0]
        answers.put(Measurement(CONTINUOUS_BATCHING, workload, error=line))
