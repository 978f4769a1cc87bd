"""LangChain's OpenAI classes work unchanged, streaming included."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI

EXTRA = {"top_k": 4, "ignore_eos": True, "seed": 5}


def _options(service: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": "tiny",
        "base_url": service.url + "/v1",
        "api_key": "author",
        "max_retries": 0,
        "max_tokens": 12,
        "extra_body": EXTRA,
        **more,
    }


MESSAGES = [SystemMessage("Be brief."), HumanMessage("Hello")]


@pytest.mark.parametrize("responses", [False, True])
def test_a_chat_model_answers_and_streams_over_both_routes(service: Any, responses: bool) -> None:
    chat = ChatOpenAI(**_options(service, use_responses_api=responses))
    answer = chat.invoke(MESSAGES)
    assert answer.text
    assert answer.usage_metadata["output_tokens"] == 12
    chunks = list(chat.stream(MESSAGES))
    assert len(chunks) > 2
    assert "".join(chunk.text for chunk in chunks) == answer.text


def test_a_completion_model_answers_and_streams(service: Any) -> None:
    model = OpenAI(**_options(service))
    assert model.invoke("Once") == "".join(model.stream("Once"))
