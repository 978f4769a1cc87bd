"""From request fields to sampling parameters."""

from typing import Any

import pytest

from ttmark.gen_service.api.plan.request_plan import sampling_params, seed_of_choice
from ttmark.gen_service.decoding.request import SamplingParams
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.generation.completions import CompletionRequest
from ttmark.shared.schemas.generation.sampling import SamplingDefaults

OPENAI = SamplingDefaults()


def _params(**fields: Any) -> SamplingParams:
    body = CompletionRequest.model_validate({"model": "m", "prompt": "p", **fields})
    return sampling_params(body, OPENAI.under(body), max_tokens=5, logprobs=None, vocab_size=100)


def test_defaults_and_single_values_arrive_and_a_bias_on_no_token_is_refused() -> None:
    assert _params() == _params(top_k=-1) == SamplingParams(max_tokens=5)
    assert _params(temperature=0).filters.greedy
    assert _params(stop="end").stop == ("end",)
    with pytest.raises(BadRequest, match="vocabulary size, 100"):
        _params(logit_bias={"100": 1})


def test_fields_that_are_given_arrive() -> None:
    given = {
        "temperature": 0.7,
        "top_p": 0.9,
        "min_p": 0.1,
        "top_k": 20,
        "presence_penalty": -1.0,
        "frequency_penalty": 0.5,
        "repetition_penalty": 1.2,
        "seed": 3,
        "ignore_eos": True,
    }
    expected = SamplingParams(max_tokens=5, stop=("a", "b"), logit_bias={7: -2.0}, **given)
    assert _params(**given, stop=["a", "b"], logit_bias={"7": -2}) == expected


def test_bans_arrive_and_tokens_that_are_not_there_are_refused() -> None:
    body = CompletionRequest.model_validate(
        {"model": "m", "prompt": "p", "min_tokens": 2, "stop_token_ids": [7, 7, 3.0]}
    )
    given = {"max_tokens": 5, "logprobs": None, "vocab_size": 100, "ends": (0,), "bad_words": ((1, 2),)}
    expected = SamplingParams(5, min_tokens=2, stop_token_ids=(7, 3), bad_words=((1, 2),))
    assert sampling_params(body, OPENAI.under(body), **given) == expected
    with pytest.raises(BadRequest, match="vocabulary size, 7"):
        sampling_params(body, OPENAI.under(body), **given | {"vocab_size": 7})
    with pytest.raises(BadRequest, match="no token to go on with"):
        sampling_params(body, OPENAI.under(body), **given | {"bad_words": tuple((n,) for n in range(97))})


@pytest.mark.parametrize("seed", [0, 5, 2**63, -1, -(10**100)])
def test_any_seed_becomes_one_that_the_engine_takes(seed: int) -> None:
    assert 0 <= (_params(seed=seed).seed or 0) < 2**63


def test_choices_of_one_prompt_have_seeds_of_their_own() -> None:
    assert seed_of_choice(None, 3) is None
    assert len({seed_of_choice(2**63 - 1, choice) for choice in range(16)}) == 16
    assert seed_of_choice(8, 0) == 8
