"""Chat templates as tokenizers carry them."""

import pytest

from ttmark.gen_service.api.chat_template import ChatTemplate
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.chat import ChatMessage

CHAT_ML = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""


def _messages(*roles: str) -> list[ChatMessage]:
    return [ChatMessage.model_validate({"role": role, "content": f"{role} says"}) for role in roles]


def test_a_conversation_is_written_with_the_opening_of_the_next_message() -> None:
    assert ChatTemplate(CHAT_ML).render(_messages("system", "user")) == (
        "<|im_start|>system\nsystem says<|im_end|>\n"
        "<|im_start|>user\nuser says<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_what_a_template_is_given_and_writes() -> None:
    template = ChatTemplate("{{ bos_token }}{{ messages[0].content }}", {"bos_token": "<s>"})
    assert template.render(_messages("user")) == "<s>user says"
    assert ChatTemplate("{{ messages[0]['role'] }}").render(_messages("developer")) == "system"
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    message = ChatMessage.model_validate({"role": "user", "content": parts})
    assert ChatTemplate("{{ messages[0].content }}").render([message]) == "one two"
    template = ChatTemplate("{% for m in messages %}\n  {% break %}\n{% endfor %}\nend")
    assert template.render(_messages("user", "user")) == "end"
    message = ChatMessage(role="user", content="{{ 7 * 7 }}")
    assert ChatTemplate("{{ messages[0].content }}").render([message]) == "{{ 7 * 7 }}"
    assert (
        ChatTemplate("{{ messages[0].content | tojson }}").render(
            [ChatMessage(role="user", content='é "<b>"')]
        )
        == '"é \\"<b>\\""'
    )


def test_a_template_can_refuse_a_conversation_and_cannot_leave_its_sandbox() -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(BadRequest, match="roles must alternate") as refusal:
        template.render(_messages("user"))
    assert refusal.value.param == "messages"
    with pytest.raises(BadRequest):
        ChatTemplate("{{ ''.__class__.__mro__[1].__subclasses__() }}").render(_messages("user"))
    with pytest.raises(ValueError, match="not valid"):
        ChatTemplate("{% for %}")


@pytest.mark.parametrize("source", ["{{ messages[7].content }}", "{{ 1 + 'a' }}", "{{ messages.append(1) }}"])
def test_a_template_that_fails_is_a_bad_request(source: str) -> None:
    with pytest.raises(BadRequest):
        ChatTemplate(source).render(_messages("user"))
