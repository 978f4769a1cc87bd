"""The small tier of the contract on a real language model: what the tiny one cannot show."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import torch
from pydantic import BaseModel, ConfigDict, Field
from transformers import AutoModelForCausalLM

from ttmark.shared.schemas.profile import Profile
from ttmark.shared.watermark.detectors.block_scores import detect_direct

pytestmark = pytest.mark.long

QUESTION: Any = [{"role": "user", "content": "Describe a walk by the sea in a few sentences."}]
KEY = b"acme-main".ljust(16)


class Animal(BaseModel):
    """What the official client asks for."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["bird", "cat", "dog", "fish"]
    name: Annotated[str, Field(min_length=1, max_length=12)]
    legs: Annotated[int, Field(ge=0, le=8)]


@pytest.fixture(scope="module")
def real(smollm2: Any) -> Any:
    """The service over SmolLM2."""
    return smollm2


def log10_p(service: Any, token_ids: list[int]) -> float:
    """What direct detection says under the key that the service marks with."""
    profile = Profile(scheme="synthid", tokenizer_fingerprint=service.generator.tokenizer.fingerprint)
    return detect_direct(profile.watermark(), KEY, token_ids).log10_p


def test_a_chat_with_the_defaults_of_openai_s_client_is_marked_and_found(real: Any) -> None:
    answer = real.client().chat.completions.create(
        model="own-template", messages=QUESTION, max_tokens=100, seed=3, extra_body={"return_token_ids": True}
    )
    assert answer.model_extra["watermark"]["status"] in ("watermarked", "partial")
    assert answer.usage.completion_tokens >= 60
    assert log10_p(real, answer.choices[0].model_extra["token_ids"]) <= -5
    assert len(answer.choices[0].message.content.split()) >= 30


def test_readings_are_the_log_softmax_of_transformers(real: Any, smollm2_folder: Path) -> None:
    texts = ["Photosynthesis is the process by which plants make sugar.", "def f(x):\n    return x + 1\n"]
    body = {"model": "tiny", "texts": texts}
    readings = real.http("reader").post("/v1/readings", json=body).json()["readings"]
    model = AutoModelForCausalLM.from_pretrained(smollm2_folder, dtype=torch.float32)
    tokenizer = real.generator.tokenizer
    for text, reading in zip(texts, readings, strict=True):
        ids = tokenizer.encode(text)
        with torch.inference_mode():
            logits = model(torch.tensor([[model.config.bos_token_id, *ids]])).logits[0, :-1].double()
        said = torch.log_softmax(logits, dim=-1)[torch.arange(len(ids)), torch.tensor(ids)]
        np.testing.assert_allclose(reading["logprobs"], said.numpy(), atol=5e-3)
        assert text.encode()[: reading["ends"][0]].decode() == tokenizer.decode(ids[:1])


def test_a_temperature_next_to_zero_is_answered_as_zero_is(real: Any) -> None:
    def answer(**options: Any) -> str:
        completion = real.client().chat.completions.create(
            model="own-template", messages=QUESTION, max_tokens=12, **options
        )
        return completion.choices[0].message.content

    assert answer(temperature=1e-308) == answer(temperature=0)


def test_the_official_client_parses_an_answer_of_the_model(real: Any) -> None:
    completion = real.client().chat.completions.parse(
        model="own-template",
        messages=[{"role": "user", "content": "Name a pet, as JSON."}],
        response_format=Animal,
        seed=1,
        max_tokens=100,
    )
    assert isinstance(completion.choices[0].message.parsed, Animal)
