"""Tools in prompts and calls in answers, for each format, beside the slow way: the whole text at once."""

import json
import re
import time
from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

import jsonschema
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.openai.fake_generator import FakeGenerator
from tests.features.structured.api.test_reasoning import next_of
from tests.harness.random_model import byte_tokenizer
from tests.harness.real_templates import SHOWN, answered, prompted
from tests.harness.tool_templates import TEMPLATES, UNLEARNED, form_of, turn
from tests.unit.gen_service.api.test_chat_template import CHAT_ML
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.conversation.control_tokens import ConversationEncoder
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.api.plan.stages import CompletionState
from ttmark.gen_service.decoding.text_stream import TextStream
from ttmark.gen_service.features.structured.answer_marks import AnsweringModel
from ttmark.gen_service.features.structured.call_reader import CallReader
from ttmark.gen_service.features.structured.formats.tool_formats import OURS, ToolFormat
from ttmark.gen_service.features.structured.forms import as_held
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars, SchemaRefused
from ttmark.gen_service.features.structured.tool_turns import turns
from ttmark.gen_service.features.structured.tools import NO_ARGUMENTS, ToolUse, tool_use
from ttmark.shared.http.service_errors import UnsupportedFeature
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.tools import Function, Tool
from ttmark.shared.tokenization import TextTokenizer

FORMS = {"ours": OURS} | {name: form_of(name) for name in TEMPLATES}
FORMATS = tuple(FORMS.values())
NAMES = list(FORMS)
TOKENIZER = TextTokenizer(byte_tokenizer())


def strict_object(**properties: dict[str, Any]) -> dict[str, Any]:
    names = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


DAYS = {"type": "integer", "minimum": 1, "maximum": 9}
WEATHER = strict_object(city={"$ref": "#/$defs/city"}, days=DAYS)
WEATHER["$defs"] = {"city": {"type": "string", "maxLength": 6}}
FUNCTIONS = [Function(name="weather", parameters=WEATHER), Function(name="now")]
SCHEMAS = {"weather": WEATHER, "now": NO_ARGUMENTS}
CALLS = (("now", {}), ("weather", {"city": '}"{', "days": 2}))
OUR_CALLS = (
    '<tool_call>[{"name": "now", "arguments": {}}, '
    '{"name": "weather", "arguments": {"city": "}\\"{", "days": 2}}]</tool_call>'
)
EXAMPLES = {"ours": OUR_CALLS} | {
    name: turn(name, *(CALLS if form_of(name).between is not None else CALLS[1:])) for name in TEMPLATES
}
TOOLS = [{"type": "function", "function": {"name": "now", "description": "The <|im_end|> time."}}]


def read(
    form: ToolFormat, pieces: list[str], schemas: Mapping[str, Any] = MappingProxyType(SCHEMAS)
) -> tuple[str, list[list[str]], bool]:
    """Words, calls as name and arguments, and whether the calls are whole."""
    reader, words, calls = CallReader(form, schemas), "", list[list[str]]()
    for number, piece in enumerate(pieces):
        said, called = reader.read(piece, final=number == len(pieces) - 1)
        words += said
        assert len({each.index for each in called}) == len(called)
        for each in called:
            if each.function.name is not None:
                calls.append([each.function.name, ""])
            assert each.index == len(calls) - 1 or each.function.name is None
            calls[each.index][1] += each.function.arguments
    return words, calls, reader.whole


def written(
    grammars: JsonGrammars,
    form: ToolFormat,
    seed: int,
    functions: list[Function] = FUNCTIONS,
    quotes: float = 0.0,
    **more: Any,
) -> str:
    """A random text under the grammar of calls; `quotes` are for the mark that ends a string."""
    options: dict[str, Any] = {"must": True, "several": True} | more
    answer = options.pop("answer", None)
    state = grammars.compile(ToolUse(form, (), functions, **options).source(answer, None)).begin()
    random, tokens = torch.Generator().manual_seed(seed), list[int]()
    (quote,) = TOKENIZER.encode('"')
    for _ in range(600):
        logits = torch.randn((1, TOKENIZER.vocab_size), generator=random)
        logits[0, quote] += quotes
        state.mask(logits, [()])
        token = int(logits.argmax())
        if token == 0:
            return TOKENIZER.decode(tokens)
        state.advance([token])
        tokens.append(token)
    return TOKENIZER.decode(tokens)


@pytest.mark.parametrize("name", NAMES)
def test_the_calls_of_an_example_are_read_in_pieces_of_every_length(name: str) -> None:
    form, text = FORMS[name], EXAMPLES[name]
    made = [(called, given) for called, given in CALLS if form.between is not None or given]
    for size in range(1, len(text) + 1):
        words, calls, whole = read(form, [text[at : at + size] for at in range(0, len(text), size)])
        assert (words.strip(), whole) == ("", True)
        assert [(called, json.loads(given)) for called, given in calls] == made


@pytest.mark.parametrize(
    ("schema", "fits", "breaks"),
    [
        ({"pattern": r"^https?:\/\/[a-z]+"}, "http://abc", "ftp://abc"),
        ({"pattern": r"\$$"}, "5 $", "5 $ or"),
        ({"pattern": "^a/b$"}, "a/b", "a/bc"),
        ({"minLength": 2.0, "maxLength": 3.0}, "abc", "abcd"),
        ({"format": "date"}, "2024-02-29", "2023-02-29"),
        ({"format": "date"}, "2023-12-31", "2023-11-31"),
        ({"format": "date-time"}, "2023-12-31T10:00:00.5+02:00", "2023-12-31"),
    ],
)
def test_a_tagged_text_is_held_to_its_schema(
    schema: dict[str, Any], fits: str, breaks: str, grammars: JsonGrammars
) -> None:
    function = Function(name="f", parameters=strict_object(a={"type": "string", **schema}), strict=True)
    form = FORMS["qwen coder"]
    use = ToolUse(form, (), [function], must=True, several=False)
    grammar = grammars.compile(use.source(None, None))
    written = turn("qwen coder", ("f", {"a": fits})), turn("qwen coder", ("f", {"a": breaks}))
    accepted = [grammar.begin()._matcher.try_consume_tokens(TOKENIZER.encode(each)) for each in written]
    assert [count == len(TOKENIZER.encode(each)) for count, each in zip(accepted, written, strict=True)] == [
        True,
        False,
    ]


@pytest.mark.parametrize("strict", [True, False])
def test_a_pattern_of_a_tagged_text_that_cannot_be_kept_to_is_set_aside_unless_strict(
    strict: bool, grammars: JsonGrammars
) -> None:
    text = {"type": "string", "pattern": r"^(?!^[-+.]*$)\d*$"}
    function = Function(name="f", parameters=strict_object(a=text), strict=strict)
    use = ToolUse(FORMS["qwen coder"], (), [function], must=True, several=False)
    if not strict:
        grammars.compile(use.source(None, None))
        return
    with pytest.raises(SchemaRefused, match="not supported"):
        use.source(None, None)


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_sign_of_a_long_argument_is_looked_at_once(name: str) -> None:
    """A long mail in pieces of a token: what grows with the square of its length takes half a minute."""
    long = "Paris; " * 4_000
    text = turn(name, ("weather", {"city": long, "days": 2}))
    began = time.process_time()
    _, calls, whole = read(FORMS[name], [text[at : at + 4] for at in range(0, len(text), 4)])
    assert time.process_time() - began < 2
    assert (json.loads(calls[0][1])["city"], whole) == (long, True)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("special", [False, True])
def test_a_model_may_write_a_call_as_its_template_does(name: str, special: bool) -> None:
    """Its marks may be special tokens, which decoders leave out."""
    backend = byte_tokenizer()
    backend.add_special_tokens(re.findall(r"<[^<>\s=]+>|\[[A-Z_]+\]", EXAMPLES[name]) if special else [])
    generator = FakeGenerator()
    generator.tokenizer = TextTokenizer(backend)
    model = AnsweringModel(ServedModel(generator, ChatTemplate(TEMPLATES[name])))
    tools = [Tool(type="function", function=function) for function in FUNCTIONS]
    token_ids = backend.encode(EXAMPLES[name], add_special_tokens=False).ids
    choices: tuple[Literal["auto", "required"], ...] = ("auto", "required")
    for choice in choices:
        use = tool_use(tools, choice, None, model)
        assert use is not None
        model.grammars.compile(use.source(None, model.answers.reasoning(""))).begin().advance(token_ids)
    stream = TextStream(generator.tokenizer, (), model.answers.special.shown)
    pieces = [*(stream.push(token) for token in token_ids), stream.finish()]
    assert model.answers.tools is not None
    words, calls, whole = read(model.answers.tools, pieces)
    assert (words.strip(), whole, json.loads(calls[-1][1])) == ("", True, CALLS[1][1])


_QUICK = ("functionary", "gigachat")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n not in _QUICK)) for n in TEMPLATES]
)
def test_nothing_is_lost_of_thoughts_words_and_calls(name: str) -> None:
    """Of an answer with two calls as the template writes it, whole and in pieces of 1 to 7 tokens."""
    faults = [answered(ChatTemplate(TEMPLATES[name]), special=special) for special in (False, True)]
    assert faults == ["", ""]


def test_few_formats_have_no_mark_of_their_own() -> None:
    """Before the calls of others there may be words."""
    assert [name for name in NAMES if FORMS[name].alone] == ["llama3", "arrows"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_prompts_with_tools_and_histories_with_calls_are_as_transformers_writes_them(name: str) -> None:
    template = ChatTemplate(TEMPLATES[name])
    said = {case: prompted(template, told, tools) for case, (told, tools) in SHOWN.items()}
    assert said == dict.fromkeys(SHOWN, "equal")


@pytest.mark.parametrize("name", UNLEARNED)
def test_a_template_whose_calls_cannot_be_learned_is_refused_in_words(name: str) -> None:
    model = AnsweringModel(ServedModel(FakeGenerator(), ChatTemplate(UNLEARNED[name])))
    with pytest.raises(UnsupportedFeature, match=r"sha256 \w{12}\) writes calls was not learned; tried: "):
        tool_use([Tool(type="function", function=Function(name="now"))], None, None, model)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=20)
def test_a_text_says_the_same_however_it_is_cut(name: str, data: st.DataObject) -> None:
    form = FORMS[name]
    before = data.draw(st.sampled_from(["", "Words. ", "a < b <tool", "  ", "\n{", "[x"]))
    text = before + EXAMPLES[name] if data.draw(st.booleans()) else before
    text = text[: data.draw(st.integers(0, len(text)))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(form, pieces) == read(form, [text])


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_without_calls_is_its_words(name: str) -> None:
    form = FORMS[name]
    for text in ("", " ", "Just words < [ {", "<tool_cal", "One { two"):
        assert read(form, list(text) or [""]) == (text, [], False)


@pytest.mark.parametrize("name", NAMES)
def test_whatever_the_grammar_lets_through_is_read_as_valid_calls(name: str, grammars: JsonGrammars) -> None:
    form, names = FORMS[name], set()
    for seed in range(8):
        words, calls, whole = read(form, [written(grammars, form, seed)])
        assert (words.strip(), whole) == ("", True)
        for called, arguments in calls:
            jsonschema.validate(json.loads(arguments), SCHEMAS[called])
            names.add(called)
    assert names == {"weather", "now"}


TEXT, COUNT, FLAG = (
    {"type": "string", "maxLength": 40},
    {"type": "integer", "minimum": 0},
    {"type": "boolean"},
)
PARAMETERS: list[dict[str, Any]] = [
    strict_object(name=TEXT, age=DAYS),
    strict_object(size={"enum": ["small", "large"]}, price={"type": "number"}, paid=FLAG),
    strict_object(date={"type": "string", "format": "date"}, id={"type": "string", "format": "uuid"}),
    strict_object(code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}),
    strict_object(steps={"type": "array", "items": strict_object(text=TEXT), "minItems": 1, "maxItems": 2}),
    strict_object(value={"anyOf": [strict_object(yes=TEXT), strict_object(no=FLAG)]}),
]


@pytest.mark.parametrize("rounds", [1, pytest.param(80, marks=pytest.mark.slow)])
def test_every_call_under_ordinary_schemas_is_valid(grammars: JsonGrammars, rounds: int) -> None:
    """To an independent validator; over random logits."""
    for seed, (number, schema) in product(range(rounds), enumerate(PARAMETERS)):
        function = Function(name=f"tool_{number}", parameters=schema, strict=True)
        form = FORMATS[(seed + number) % len(FORMATS)]
        text = written(grammars, form, seed * 100 + number, [function], quotes=3.0, several=False)
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        words, ((name, arguments),), whole = read(form, pieces, {function.name: schema})
        assert (words, name, whole) == ("", function.name, True)
        jsonschema.validate(json.loads(arguments), schema)


@pytest.mark.parametrize("name", NAMES)
def test_words_are_free_until_they_open_a_call_which_is_held_to_its_schema(
    name: str, grammars: JsonGrammars
) -> None:
    form = FORMS[name]
    source = ToolUse(form, (), FUNCTIONS, must=False, several=True).source(None, None)
    assert source.free
    grammar = grammars.compile(source)
    free = grammar.begin()
    for token in TOKENIZER.encode("Any words, é and 🦊. 1 < 2\n"):
        logits = torch.zeros((1, TOKENIZER.vocab_size))
        free.mask(logits, [()])
        assert logits[0, token].isfinite()
        free.advance([token])
    free.mask(logits := torch.zeros((1, TOKENIZER.vocab_size)), [()])
    assert logits[0, 0].isfinite()
    before = re.split("[\x00-\x03]", form.lead + form.call)[0]
    assert next_of(grammars, source, before) <= set("wn{ \n0123456789")


def test_a_schema_answers_in_place_of_words(grammars: JsonGrammars) -> None:
    schema = strict_object(a={"const": 1})
    said = {written(grammars, OURS, seed, must=False, several=False, answer=schema) for seed in range(8)}
    texts = [read(OURS, [text]) for text in said]
    assert any(calls for _, calls, _ in texts)
    assert all(bool(words) != bool(calls) for words, calls, _ in texts)
    for words, calls, _ in texts:
        assert calls or json.loads(words) == {"a": 1}


def test_strict_refuses_a_keyword_that_cannot_be_kept_to(grammars: JsonGrammars) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    for strict in (None, False, True):
        function = Function(name="f", parameters=schema, strict=strict)
        source = ToolUse(OURS, (), [function], must=True, several=False).source(None, None)
        if strict:
            with pytest.raises(SchemaRefused, match="uniqueItems"):
                grammars.compile(source)
        else:
            grammars.compile(source)


HISTORY = [
    ChatMessage(role="user", content="Time?"),
    ChatMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "now", "arguments": '{"zone": "CET"}'}}
            ],
        }
    ),
    ChatMessage(role="tool", tool_call_id="c1", content="12:00"),
]


def test_a_template_that_knows_tools_gets_tools_arguments_as_values_and_names_of_results() -> None:
    template = ChatTemplate(
        "{% for t in tools %}{{ t.function.name }}|{% endfor %}"
        "{% for m in messages %}{% for c in m.tool_calls or () %}"
        "<call>{{ c.function.name }} {{ c.function.arguments | tojson }}</call>{% endfor %}"
        "{% if m.role == 'tool' %}{{ m.name }}={{ m.content }}{% endif %}{% endfor %}"
    )
    assert template.render(HISTORY, tools=TOOLS) == 'now|<call>now {"zone": "CET"}</call>now=12:00'


def test_a_template_that_knows_no_tools_gets_them_in_a_system_text() -> None:
    template = ChatTemplate("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}")
    text = template.render(HISTORY, tools=TOOLS)
    assert text.startswith("[system]You can call functions")
    assert json.dumps([TOOLS[0]["function"]]) in text
    assert '[assistant]<tool_call>[{"name": "now", "arguments": {"zone": "CET"}}]</tool_call>' in text
    assert text.endswith("[user]<tool_response>12:00</tool_response>")
    system = [ChatMessage(role="system", content="Be brief."), *HISTORY]
    assert template.render(system, tools=TOOLS).startswith("[system]Be brief.\n\nYou can call functions")


@pytest.mark.parametrize(
    "template",
    ["{{ tools | tojson }}{{ messages | tojson }}<tool_call></tool_call>", "{{ messages | tojson }}"],
)
@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": "<|im_end|>"}',
        '{"a": "\\u003c|im_end|>"}',
        '"{\\"a\\": \\"\\\\u003c|im_end|>\\"}"',
        "<|im_end|>",
        '{"<|im_end|>": 1}',
    ],
)
def test_control_tokens_in_tools_and_calls_are_text(template: str, arguments: str) -> None:
    backend = byte_tokenizer()
    backend.add_special_tokens(["<|im_end|>"])
    control = backend.token_to_id("<|im_end|>")
    call = {"id": "<|im_end|>", "function": {"name": "now", "arguments": arguments}}
    history = [
        ChatMessage(role="user", content="Time?"),
        ChatMessage.model_validate({"role": "assistant", "tool_calls": [call]}),
        ChatMessage(role="tool", tool_call_id="<|im_end|>", content="<|im_end|>"),
    ]
    encoder = ConversationEncoder(TextTokenizer(backend), ChatTemplate(template))
    text, token_ids = encoder.encode(history, "messages", 100_000, TOOLS)
    assert "<|im_end|>" in text
    assert control not in token_ids


@pytest.mark.parametrize("name", NAMES)
def test_a_receipt_is_of_what_clients_hold(name: str) -> None:
    use = ToolUse(FORMS[name], (), FUNCTIONS, must=False, several=True)
    for words in ("", *(["Words. "] if not FORMS[name].alone else [])):
        said, calls = CallReader(use.form, use.schemas).read(words + EXAMPLES[name], final=True)
        assert as_held(CompletionState(said, calls=calls)).splitlines() == [*filter(None, [words]), '}"{']


def test_a_result_of_a_tool_is_a_text_though_a_template_walks_over_the_parts_of_users() -> None:
    parts = [{"type": "text", "text": text} for text in "12"]
    result = {"role": "tool", "tool_call_id": "c", "content": parts}
    messages = [ChatMessage(role="user", content="Hi"), ChatMessage.model_validate(result)]
    assert [turn["content"] for turn in turns(messages, parts=True)] == ["Hi", "1\n2"]


def test_arguments_of_the_history_are_json_in_the_prompt_though_they_are_empty_or_cut() -> None:
    for arguments, value in (
        ("", {}),
        (" \n", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"city": "Par', '{"city": "Par'),
    ):
        call = {"id": "c", "type": "function", "function": {"name": "now", "arguments": arguments}}
        message = ChatMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})
        tools = [{"type": "function", "function": {"name": "now"}}]
        prompt = ChatTemplate(CHAT_ML).render([message], tools=tools)
        written = prompt.rpartition('"arguments": ')[2].partition("}]</tool_call>")[0]
        assert json.loads(written) == value
