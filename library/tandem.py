"""`ttmark.tandem`: marked pairs in transformers' own `generate`."""

from collections.abc import Callable
from typing import Any

import torch
from transformers import (
    EosTokenCriteria,
    MaxLengthCriteria,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    StopStringCriteria,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ttmark.library.generation_requests import generation_request, sampling_params
from ttmark.library.in_transformers import InTransformers
from ttmark.library.key import Key
from ttmark.library.model import watched
from ttmark.library.tokenizer import text_tokenizer

_KNOWN = (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    MaxLengthCriteria,
    EosTokenCriteria,
    StopStringCriteria,
)


def tandem(key: Key, *, tokenizer: Any = None, seed: int | None = None) -> Callable[..., torch.Tensor]:
    """For `model.generate(**inputs, do_sample=True, custom_generate=ttmark.tandem(key))`.

    Temperature, top-k, top-p, min-p, the repetition penalty, the limit of tokens, the ends of text and
    `stop_strings` are those of the call. Row i of a batch has the seed plus i.

    Args:
        tokenizer: of the model; left out: from where the model was loaded.
        seed: the same seed gives the same tokens.

    Returns:
        A function for `custom_generate`. It raises ValueError for what it cannot do: greedy decoding,
        beams, other logits processors and stopping criteria.
    """

    def generate(
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        stop_strings: Any = None,  # named here, transformers leaves it out of its own criteria
        **inputs: Any,
    ) -> torch.Tensor:
        config = generation_config
        if not config.do_sample or (config.num_beams or 1) > 1:
            raise ValueError("greedy decoding and beams leave nothing to mark: pass do_sample=True")
        given = [*(logits_processor or ()), *(stopping_criteria or ())]
        other = [type(one).__name__ for one in given if not isinstance(one, _KNOWN)]
        if other:
            raise ValueError(f"tandem decoding does not apply {', '.join(other)}")
        name = str(getattr(model.config, "_name_or_path", ""))
        if tokenizer is None and not name:
            raise ValueError(
                "the model has no folder to find its tokenizer in: pass tandem(key, tokenizer=...)"
            )
        read = text_tokenizer(tokenizer if tokenizer is not None else name)
        options = {
            "max_new_tokens": config.max_length - input_ids.shape[1],
            "temperature": config.temperature,
            "top_k": config.top_k,
            "top_p": config.top_p,
            "min_p": config.min_p,
            "repetition_penalty": config.repetition_penalty,
            "seed": seed,
            "stop_strings": stop_strings if stop_strings is not None else config.stop_strings,
        }
        mask = inputs.get("attention_mask")
        mask = torch.ones_like(input_ids) if mask is None else mask
        prompts = [tuple(row[seen.bool()].tolist()) for row, seen in zip(input_ids, mask, strict=True)]
        requests = [
            generation_request(number, prompt, sampling_params(options, {}, number), key, read, name)
            for number, prompt in enumerate(prompts)
        ]
        ends = config.eos_token_id
        ends = [] if ends is None else ends if isinstance(ends, list) else [ends]
        written: list[list[int]] = [[] for _ in requests]
        for number, delta in watched(requests, InTransformers(model, read, ends).generate(requests), read):
            written[number] += delta.token_ids
        filler = config.pad_token_id if config.pad_token_id is not None else next(iter(ends), 0)
        width = max(map(len, written))
        new = [[*row, *[filler] * (width - len(row))] for row in written]
        return torch.cat(
            [input_ids, torch.tensor(new, dtype=input_ids.dtype, device=input_ids.device)], dim=1
        )

    return generate
