"""Which sampling a text is made with, or is supposed to be: the request's, else the model's own."""

from typing import Any

import pytest

from tests.contract.openai.composed import BODIES, LIMITS, TEMPERED
from tests.contract.openai.fake_generator import CONTEXT_LENGTH
from ttmark.shared.schemas.generation.sampling import SamplingDefaults

OPENAI = SamplingDefaults()
FIELDS = tuple(OPENAI.under(OPENAI))


def used(fake: Any, path: str, model: str, **named: Any) -> dict[str, Any]:
    """The five values that a request reaches the engine with."""
    fake.answer(path, model=model, **named)
    return {name: getattr(fake.generator.requests[-1].sampling, name) for name in FIELDS}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(("model", "defaults"), [("tiny", OPENAI), ("tempered", TEMPERED)])
def test_the_model_s_sampling_holds_field_by_field_where_a_request_names_none(fake, path, model, defaults):
    own = defaults.under(OPENAI.model_copy(update=dict.fromkeys(FIELDS)))
    assert used(fake, path, model) == own
    assert used(fake, path, model, **dict.fromkeys(FIELDS)) == own
    named = {"temperature": 1.5, "top_p": 0.7, "top_k": 3, "min_p": 0.2, "repetition_penalty": 1.5}
    for name, value in named.items():
        assert used(fake, path, model, **{name: value}) == own | {name: value}
    off = OPENAI.under(OPENAI)
    assert used(fake, path, model, **off) == off


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_an_answer_that_names_no_limit_has_the_model_s_or_what_the_context_leaves(fake, path):
    def most(model: str, limit: int | None = None) -> int:
        fake.answer(path, model=model, **{LIMITS[path]: limit})
        return int(fake.generator.requests[-1].sampling.max_tokens)

    assert most("tempered") == TEMPERED.max_new_tokens
    assert most("tempered", 12) == 12
    assert most("tiny") == CONTEXT_LENGTH - len(fake.generator.requests[-1].prompt_ids)
    assert TEMPERED.answer_tokens(room=5) == 5


@pytest.mark.parametrize("path", BODIES)
def test_text_without_named_sampling_is_marked_and_greedy_text_is_not(fake: Any, path: str) -> None:
    assert fake.block(path, model="tempered")["watermarked_blocks"] > 0
    assert fake.block(path, model="tempered", temperature=0)["reasons"] == {"greedy": 8}


def test_a_response_says_which_sampling_it_was_made_with(fake: Any) -> None:
    answer = fake.answer("responses", model="tempered", top_p=0.9)
    assert (answer["temperature"], answer["top_p"]) == (TEMPERED.temperature, 0.9)


def test_the_models_say_what_holds(fake: Any) -> None:
    listed = {each["id"]: each["sampling"] for each in fake.http().get("/v1/models").json()["data"]}
    assert listed["tiny"] == OPENAI.model_dump()
    assert listed["tempered"] == TEMPERED.model_dump()
    assert fake.http().get("/v1/models/tempered").json()["sampling"] == TEMPERED.model_dump()


def test_a_repetition_penalty_keeps_greedy_text_from_going_round(real: Any) -> None:
    def different(**more: Any) -> int:
        asked = {"temperature": 0, "ignore_eos": True, "return_token_ids": True, "tokens": 60} | more
        return len(set(real.answer("completions", **asked)["choices"][0]["token_ids"]))

    assert different(repetition_penalty=2) > different() + 10


def test_texts_with_a_repetition_penalty_are_found_and_best_with_it(real: Any) -> None:
    sampling = {"top_k": 4, "repetition_penalty": 1.8}
    writing = sampling | {"tokens": 150, "ignore_eos": True, "return_token_ids": True}
    texts = [real.answer("completions", seed=seed, **writing)["choices"][0]["token_ids"] for seed in range(2)]

    def log10_p(**change: Any) -> float:
        total = 0.0
        for text in texts:
            found = real.log10_p(text, prompt="Once", **sampling | change)
            assert found < -5
            total += found
        return total

    assert log10_p() < log10_p(repetition_penalty=1)
