"""Tools in requests, and services that call them: a real engine, and a fake that always does."""

import json
from typing import Any

import pytest

from tests.contract.openai.composed import build_service
from tests.contract.openai.fake_generator import FakeGenerator
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.decoding.request import Delta

CITY = {"type": "string", "maxLength": 6, "pattern": "^[a-z]*$"}


PARAMETERS = {
    "type": "object",
    "properties": {"city": CITY},
    "required": ["city"],
    "additionalProperties": False,
}


WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS, "strict": True}}


NOW: Any = {"type": "function", "function": {"name": "now", "description": "The time."}}


KNOWS_TOOLS = (
    "{% for t in tools or () %}{{ t.function.name }}{% endfor %}"
    "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% for c in m.tool_calls or () %}"
    '\n<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}{% endfor %}:"
)


def written(calls: Any) -> str:
    """Calls as the template writes them."""
    form = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
    return "".join(form.format(each.name, json.dumps(json.loads(each.arguments))) for each in calls)


def count(service: Any, text: str) -> int:
    """Tokens of a text."""
    asked = {"model": "own-template", "prompt": text}
    return int(service.http().post("/tokenize", json=asked).json()["count"])


@pytest.fixture(scope="module")
def tooled(serve: Any, engine: Any) -> Any:
    """The real engine with a template that knows tools, in few characters: the context is small."""
    return serve(build_service(engine, template=ChatTemplate(KNOWS_TOOLS)))


class Scripted(FakeGenerator):
    """Says words, and then calls two tools in the template's format."""

    TEXT = (
        'I < look.<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n<tool_call>\n'
        '{"name": "weather", "arguments": {"city": "ab"}}\n</tool_call>'
    )

    def _completion(self, request: Any) -> list[Delta]:
        pieces = [self.TEXT[at : at + 7] for at in range(0, len(self.TEXT), 7)]
        return [
            self._delta(
                request,
                self.tokenizer.encode(piece),
                piece,
                "stop" if number == len(pieces) else None,
                7 * number,
            )
            for number, piece in enumerate(pieces, start=1)
        ]


@pytest.fixture(scope="module")
def scripted(serve: Any) -> Any:
    """Words, and then two calls."""
    return serve(build_service(Scripted(), template=ChatTemplate(KNOWS_TOOLS)))
