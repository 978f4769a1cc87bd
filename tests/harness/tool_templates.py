"""Small chat templates with ways to write tool calls: of model families, invented ones, and hopeless ones."""

from collections.abc import Mapping
from typing import Any

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.features.structured.formats.tool_formats import ToolFormat
from ttmark.gen_service.features.structured.learned_format import learned_of


def template(calls: str, *, tools: str = "{{ tools | tojson }}", words: str = "{{ m.content or '' }}") -> str:
    """Shows tools, then the turns, in which `calls` writes those of `m`."""
    return (
        "{% if tools %}[t]" + tools + "[/t]{% endif %}{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
        + words
        + "{% if m.tool_calls %}"
        + calls
        + "{% endif %}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )


def each(call: str, between: str = "") -> str:
    """`call` for each `f` of the turn's functions."""
    joint = "{% if not loop.last %}" + between + "{% endif %}" if between else ""
    return "{% for c in m.tool_calls %}{% set f = c.function %}" + call + joint + "{% endfor %}"


def tags(argument: str, between: str = "") -> str:
    """`argument` for each `k` and `v` of a function's arguments."""
    joint = "{% if not loop.last %}" + between + "{% endif %}" if between else ""
    return "{% for k, v in f.arguments.items() %}" + argument + joint + "{% endfor %}"


_JSON = '{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}'
_VALUE = "{{ v if v is string else v | tojson }}"
TEMPLATES: Mapping[str, str] = {
    "hermes": template(each("\n<tool_call>\n" + _JSON + "\n</tool_call>")),
    "llama3": template(
        "{% set f = m.tool_calls[0].function %}"
        '{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}'
    ),
    "mistral": template(
        "[TOOL_CALLS]["
        + each(_JSON[:-1] + ', "id": "{{ c.id }}"}', ", ")
        + "]{% if (m.tool_calls[0].id | length)"
        " != 9 %}{{ raise_exception('ids have 9 letters') }}{% endif %}"
    ),
    "qwen coder": template(
        each("\n<tool_call>\n<function={{ f.name }}>\n")[:-12]
        + tags("<parameter={{ k }}>\n" + _VALUE + "\n</parameter>\n")
        + "</function>\n</tool_call>{% endfor %}"
    ),
    "glm": template(
        each(
            "<tool_call>{{ f.name }}"
            + tags("<arg_key>{{ k }}</arg_key><arg_value>" + _VALUE + "</arg_value>")
        ).replace("{% endfor %}{% endfor %}", "{% endfor %}</tool_call>{% endfor %}")
    ),
    "devstral": template(each("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}")),
    "deepseek": template(
        "<|calls|>" + each("<|call|>{{ f.name }}<|sep|>{{ f.arguments | tojson }}<|/call|>") + "<|/calls|>"
    ),
    "python": template(
        "<|calls|>["
        + each("{{ f.name }}(" + tags("{{ k }}={{ v | tojson }}", ", ") + ")", ", ")
        + "]<|/calls|>"
    ),
    "functionary": template(each("<function={{ f.name }}>{{ f.arguments | tojson }}</function>")),
    "command r": template("Action:\n```json\n[" + each(_JSON, ", ") + "]```"),
    "gigachat": template(
        "{% set f = m.tool_calls[0].function %}function call<|role|>\n" + _JSON + "<|turn|>\n",
        words="{{ m.content or '' }}{% if m.role == 'assistant' %}<|turn|>\n{% endif %}",
    ),
    # Invented ones.
    "arrows": template(each("-->[{{ f.name }}]" + tags("({{ k }}=>{{ v | tojson }})") + "<--\n")),
    "types": template(
        each(
            "<do {{ f.name }}>"
            + tags("<in {{ k }} {{ 'text' if v is string else 'data' }}>" + _VALUE + "</in>")
            + "</do>"
        )
    ),
    "signs": template(each("⟦run:{{ f.name }}⟧{{ f.arguments | tojson }}⟦done⟧", "\n")),
    "arguments first": template(
        "<run>" + each('{"with": {{ f.arguments | tojson }}, "do": "{{ f.name }}"}', ",") + "</run>"
    ),
    "numbered": template(
        each('<step n="{{ loop.index }}" f="{{ f.name }}">{{ f.arguments | tojson }}</step>', "\n")
    ),
    "own quotes": template(
        each(
            "<|go|>{{ f.name }}!"
            + tags("{{ k }}:{{ ('~~' ~ v ~ '~~') if v is string else v | tojson }}", ";")
            + "<|/go|>"
        )
    ),
}
UNLEARNED: Mapping[str, str] = {
    "named twice": template(
        each("<{{ f.name }}_call><args>{{ f.arguments | tojson }}</args></{{ f.name }}_call>")
    ),
    "no history": template("", tools="Write calls as <x>name</x>. {{ tools | tojson }}"),
    "spelled": template(each("<f>{{ f.name }}:{{ f.arguments | tojson | list | join(' ') }}</f>")),
}


def form_of(name: str) -> ToolFormat:
    """The format that a template teaches, which is proved."""
    form = learned_of(ChatTemplate(TEMPLATES[name])).tools
    if form is None:
        raise LookupError(name)
    return form


def turn(name: str, *calls: tuple[str, Mapping[str, Any]], words: str = "") -> str:
    """What a template writes of an answer with these calls."""
    made = [
        {"id": f"abcdefgh{number}", "function": {"name": called, "arguments": given}}
        for number, (called, given) in enumerate(calls)
    ]
    told = {"role": "assistant", "content": words, "tool_calls": made}
    source = ChatTemplate(TEMPLATES[name])
    with source._environment.spending(1_000_000):
        return (
            source.written([told], (), False)
            .removeprefix("<|assistant|>")
            .removesuffix("<|end|>\n")
            .removesuffix("<|turn|>\n")
        )
