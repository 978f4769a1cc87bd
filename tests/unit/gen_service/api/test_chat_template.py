"""Chat templates as tokenizers carry them."""

import pytest

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.generation.chat import ChatMessage

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


WALKS = (
    "{% for m in messages %}{% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}|{% endif %}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("source", "content", "prompt"),
    [
        ("a{% generation %}{{ messages[0].content }}{% endgeneration %}b", "x", "axb"),
        ("{{ ['é', 1] | tojson(ensure_ascii=True, separators=(',', ':')) }}", "x", '["\\u00e9",1]'),
        ("{{ {'b': 1, 'a': 'é'} | tojson(sort_keys=True) }}", "x", '{"a": "é", "b": 1}'),
        ("{{ tools is none }}", "x", "True"),
        (WALKS, "one", "one|"),
        (WALKS, ["one", "two"], "one|two|"),
        ("{{ messages[0].content }}", ["one"], "one"),
        ("{{ messages[0].content }}", ["one", "two"], "one\ntwo"),
        ("{{ messages[0].content | tojson }}", ["one"], '"one"'),
    ],
)
def test_what_templates_elsewhere_may_say_is_said_alike(
    source: str, content: str | list[str], prompt: str
) -> None:
    told = content if isinstance(content, str) else [{"type": "text", "text": text} for text in content]
    message = ChatMessage.model_validate({"role": "user", "content": told})
    assert ChatTemplate(source).render([message]) == prompt


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thoughts_are_told_by_both_names_that_templates_know(name: str) -> None:
    message = ChatMessage.model_validate({"role": "assistant", "content": None, name: "Hm"})
    source = "{{ messages[0].reasoning_content }}{{ messages[0].thinking }}"
    assert ChatTemplate(source).render([message]) == "HmHm"


@pytest.mark.parametrize("keyword", ["indent=1000", "separators=(' ' * 1000, ':')"])
def test_json_of_a_template_is_not_padded_far(keyword: str) -> None:
    with pytest.raises(BadRequest, match="pads too far"):
        ChatTemplate("{{ [1, 2] | tojson(" + keyword + ") }}").render(_messages("user"))
