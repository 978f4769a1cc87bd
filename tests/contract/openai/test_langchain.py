"""LangChain's OpenAI classes work unchanged, streaming included."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI

EXTRA = {"top_k": 4, "ignore_eos": True}


def _options(service: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": "tiny",
        "base_url": service.url + "/v1",
        "api_key": "author",
        "max_retries": 0,
        "max_tokens": 12,
        "seed": 5,
        "extra_body": EXTRA,
        **more,
    }


@pytest.fixture
def chat(service: Any) -> ChatOpenAI:
    return ChatOpenAI(**_options(service))


MESSAGES = [SystemMessage("Be brief."), HumanMessage("Hello")]


def test_a_chat_model_answers_with_usage(chat: ChatOpenAI) -> None:
    answer = chat.invoke(MESSAGES)
    assert answer.content
    assert answer.usage_metadata["output_tokens"] == 12
    assert answer.response_metadata["finish_reason"] == "length"


def test_a_chat_model_streams_the_same_answer(chat: ChatOpenAI) -> None:
    chunks = list(chat.stream(MESSAGES))
    assert len(chunks) > 2
    assert "".join(str(chunk.content) for chunk in chunks) == chat.invoke(MESSAGES).content


def test_log_probabilities_reach_the_metadata(service: Any) -> None:
    answer = ChatOpenAI(**_options(service, logprobs=True, top_logprobs=2)).invoke(MESSAGES)
    assert len(answer.response_metadata["logprobs"]["content"]) == 12


def test_a_completion_model_answers_and_streams(service: Any) -> None:
    model = OpenAI(**_options(service))
    assert model.invoke("Once") == "".join(model.stream("Once"))
