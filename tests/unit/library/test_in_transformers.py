"""Tandem decoding in transformers writes what the engine writes; processors mark single tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

import ttmark
from tests.harness.random_model import small_llama
from ttmark.gen_service.decoding.request import GenerationRequest
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.library import in_transformers
from ttmark.library.generation_requests import generation_request, sampling_params
from ttmark.shared.keys.key_files import LibraryKeyFile
from ttmark.shared.schemas.profile import profile_fields

PROMPTS = ["The old lighthouse stood", "A", "Once upon a time there was a very long road that led to"]
OPTIONS: dict[str, Any] = {"temperature": 0.8, "top_k": 50, "top_p": 0.95, "max_new_tokens": 40}


@pytest.fixture(scope="module")
def theirs() -> tuple[Any, Any]:
    tokenizer = AutoTokenizer.from_pretrained(DEMO_MODEL_PATH, padding_side="left")
    return AutoModelForCausalLM.from_pretrained(DEMO_MODEL_PATH, dtype=torch.float32), tokenizer


class NamesPastKeyValues(LlamaForCausalLM):
    """A class of before transformers 5.24, as code beside a model's weights is."""

    def forward(self, input_ids: Any = None, past_key_values: Any = None, **others: Any) -> Any:
        others.pop("cache", None)  # nothing that it knows
        return super().forward(input_ids, past_key_values=past_key_values, **others)


def requests(model: ttmark.Model, key: ttmark.Key, options: dict[str, Any]) -> list[GenerationRequest]:
    """One for each prompt, with the seeds that follow from 1."""
    return [
        generation_request(
            number,
            tuple(model.tokenizer.encode(prompt)),
            sampling_params({**options, "seed": 1}, {}, number),
            key,
            model.tokenizer,
            "demo",
        )
        for number, prompt in enumerate(PROMPTS)
    ]


def token_ids(model: ttmark.Model, asked: list[GenerationRequest]) -> list[list[int]]:
    """Of completions that were described in full."""
    found: list[list[int]] = [[] for _ in asked]
    for number, delta in model._writer.generate(asked):
        found[number] += delta.token_ids
    return found


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_many_completions_are_those_of_the_engine(
    model: ttmark.Model,
    theirs: tuple[Any, Any],
    block_size: int,
    penalty: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_transformers, "AT_ONCE", 2)
    key = ttmark.Key.new(block_size=block_size, scheme="gumbel")
    # Longer blocks cost far more: their texts are shorter.
    options = {**OPTIONS, "repetition_penalty": penalty, "max_new_tokens": 40 // block_size}
    asked = requests(model, key, options)
    assert token_ids(ttmark.load(theirs), asked) == token_ids(model, asked)


@pytest.mark.filterwarnings("ignore:.past_key_values. is deprecated")
def test_a_model_is_given_its_cache_by_the_name_that_it_has_for_it(
    model: ttmark.Model, theirs: tuple[Any, Any], key: ttmark.Key
) -> None:
    older = NamesPastKeyValues.from_pretrained(DEMO_MODEL_PATH, dtype=torch.float32)
    asked = requests(model, key, OPTIONS)
    assert token_ids(ttmark.load((older, theirs[1])), asked) == token_ids(model, asked)


def test_custom_generate_writes_what_the_library_does_with_a_padded_batch(
    model: ttmark.Model, theirs: tuple[Any, Any], key: ttmark.Key
) -> None:
    own, tokenizer = theirs
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    written = own.generate(**inputs, do_sample=True, custom_generate=ttmark.tandem(key, seed=3), **OPTIONS)
    texts = tokenizer.batch_decode(written[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    assert texts == model.generate(PROMPTS, key=key, seed=3, chat=False, **OPTIONS)


@pytest.mark.parametrize("stop", [".", ["the", "and "]])
def test_custom_generate_ends_at_stop_strings(
    theirs: tuple[Any, Any], key: ttmark.Key, stop: str | list[str]
) -> None:
    own, tokenizer = theirs
    inputs = tokenizer(PROMPTS[:1], return_tensors="pt")

    def completion(**options: Any) -> list[int]:
        marked = ttmark.tandem(key, seed=3)
        return own.generate(**inputs, do_sample=True, custom_generate=marked, **OPTIONS | options)[0].tolist()

    begins, whole = inputs["input_ids"].shape[1], completion(max_new_tokens=60)
    stops = [stop] if isinstance(stop, str) else stop
    end = next(
        end
        for end in range(begins, len(whole) + 1)
        if any(one in tokenizer.decode(whole[begins:end]) for one in stops)
    )
    # As in transformers, with the token that completes it.
    assert completion(max_new_tokens=60, stop_strings=stop, tokenizer=tokenizer) == whole[:end]


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"do_sample": False}, "do_sample=True"),
        ({"num_beams": 2}, "do_sample=True"),
        ({"no_repeat_ngram_size": 2}, "NoRepeatNGramLogitsProcessor"),
        ({"max_time": 0.1}, "MaxTimeCriteria"),
        ({"stopping_criteria": [lambda ids, scores: True]}, "function"),
    ],
)
def test_custom_generate_refuses_what_it_would_leave_out(
    theirs: tuple[Any, Any], key: ttmark.Key, asked: dict[str, Any], named: str
) -> None:
    own, tokenizer = theirs
    options = {"do_sample": True, "max_new_tokens": 4, **asked}
    with pytest.raises(ValueError, match=named):
        own.generate(
            **tokenizer(PROMPTS[:1], return_tensors="pt"), custom_generate=ttmark.tandem(key), **options
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("top_k", [0, 200, 50])
@pytest.mark.parametrize("block_size", [1, 2])
def test_the_text_of_a_random_model_is_found(theirs: tuple[Any, Any], block_size: int, top_k: int) -> None:
    """Nearly all of its blocks lie beyond those that are reweighted together."""
    torch.manual_seed(0)
    size = theirs[0].config.vocab_size
    unsure = ttmark.load((LlamaForCausalLM(small_llama(vocab_size=size, eos_token_id=None)), theirs[1]))
    key = ttmark.Key(LibraryKeyFile(secret="07" * 32, profile=profile_fields(pool=1, block_size=block_size)))
    text = unsure.generate("A", key=key, max_new_tokens=80, top_k=top_k, seed=1, chat=False)
    assert ttmark.detect(text, key, model=theirs[1]).log10_p < -20


def test_a_text_that_will_not_be_found_is_said_to_be_so(theirs: tuple[Any, Any], key: ttmark.Key) -> None:
    own, tokenizer = theirs
    options: dict[str, Any] = {"max_new_tokens": 60, "temperature": 1e-3}
    with pytest.warns(UserWarning, match="may not be found"):
        ttmark.load(theirs).generate("A", key=key, chat=False, **options)
    with pytest.warns(UserWarning, match="may not be found"):
        own.generate(
            **tokenizer(PROMPTS[:1], return_tensors="pt"),
            do_sample=True,
            custom_generate=ttmark.tandem(key),
            **options,
        )


def test_a_processor_marks_single_tokens(theirs: tuple[Any, Any], key: ttmark.Key) -> None:
    own, tokenizer = theirs
    inputs = tokenizer(PROMPTS[:1], return_tensors="pt")
    torch.manual_seed(1)
    processor = ttmark.SingleToken(key, tokenizer)
    written = own.generate(**inputs, do_sample=True, max_new_tokens=80, logits_processor=[processor])
    ids = written[0, inputs["input_ids"].shape[1] :].tolist()
    assert ttmark.detect(ids, processor.key).watermarked
    assert not ttmark.detect(ids, key, model=tokenizer).watermarked


def test_a_processor_begins_anew_with_each_call(theirs: tuple[Any, Any], key: ttmark.Key) -> None:
    own, tokenizer = theirs
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    processor = ttmark.SingleToken(key, tokenizer)
    evidence = []
    for prompts in (PROMPTS[2:], PROMPTS[1:2], PROMPTS[:2]):  # of other lengths, then of another number
        torch.manual_seed(1)
        inputs = tokenizer(prompts, return_tensors="pt", padding=True)
        written = own.generate(**inputs, do_sample=True, max_new_tokens=60, logits_processor=[processor])
        ids = written[-1, inputs["input_ids"].shape[1] :].tolist()
        evidence.append(ttmark.detect(ids, processor.key).log10_p)
    assert max(evidence) < -10, evidence
    with pytest.raises(
        ValueError, match="beams"
    ):  # whose rows take each other's place: no mark would be found
        own.generate(**inputs, do_sample=True, num_beams=2, max_new_tokens=60, logits_processor=[processor])


@pytest.mark.slow
def test_custom_generate_writes_the_tokens_of_the_engine_with_smollm2(
    smollm2_folder: Path, key: ttmark.Key, record_result: Callable[[str, str, str], None]
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder, padding_side="left")
    own = AutoModelForCausalLM.from_pretrained(smollm2_folder, dtype=torch.float32)
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    options = {**OPTIONS, "repetition_penalty": 1.0}
    written = own.generate(**inputs, do_sample=True, custom_generate=ttmark.tandem(key, seed=1), **options)
    with ttmark.load(smollm2_folder, reproducible=True) as engine:
        expected = token_ids(engine, requests(engine, key, options))
    new = written[:, inputs["input_ids"].shape[1] :].tolist()
    same = sum(own_ids[: len(ids)] == ids for own_ids, ids in zip(new, expected, strict=True))
    texts = f"{same} of {len(PROMPTS)} texts of SmolLM2 in float32"
    record_result("custom_generate beside the engine at one seed", "the same tokens", texts)
    assert same == len(PROMPTS)
