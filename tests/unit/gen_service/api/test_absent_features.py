"""A request that asks for a feature which this service does not have is told so; any other goes its way."""

from typing import Any

import pytest

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.plan.stages import open_stages
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.generation.chat import ChatRequest
from ttmark.shared.schemas.generation.sampling import OPTIONAL_FIELDS

NOW = {"type": "function", "function": {"name": "now"}}
ASKING: dict[str, Any] = {
    "guided_choice": ["a", "b"],
    "guided_grammar": 'start: "a"',
    "guided_json": {},
    "guided_regex": "a",
    "response_format": {"type": "json_object"},
    "structured_outputs": {"regex": "a"},
    "tool_choice": "auto",
    "tools": [NOW],
    "watermark.manifest": True,
}


def request(**fields: Any) -> ChatRequest:
    messages = [{"role": "user", "content": "Hi"}]
    return ChatRequest.model_validate({"model": "tiny", "messages": messages, **fields})


def test_each_field_of_a_feature_is_refused_by_its_name_where_that_is_not_there() -> None:
    assert sorted(ASKING) == sorted(OPTIONAL_FIELDS)
    for path, value in ASKING.items():
        name, _, inner = path.partition(".")
        with pytest.raises(BadRequest, match=rf"^{path}: not supported by this service") as refused:
            open_stages((), request(**{name: {inner: value} if inner else value}), "tiny")
        assert refused.value.param == path


@pytest.mark.parametrize("fields", [{}, {"response_format": {"type": "text"}}, {"watermark": {}}])
def test_what_asks_for_none_goes_its_way(fields: dict[str, Any]) -> None:
    assert open_stages((), request(**fields), "tiny") == []


def test_a_conversation_with_calls_needs_who_can_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttmark.gen_service.api.conversation.chat_template.modules_of", lambda *_: [])
    with pytest.raises(BadRequest, match=r"^tools: not supported by this service"):
        ChatTemplate("{{ messages }}").render(request().messages, tools=[NOW])
