"""Reasoning and answers told apart: however a text is cut, and in grammars that leave reasoning free."""

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.openai.fake_generator import FakeGenerator
from tests.harness.random_model import byte_tokenizer
from tests.harness.tool_templates import form_of
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.conversation.control_tokens import ConversationEncoder
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.decoding.text_stream import TextStream
from ttmark.gen_service.features.structured.answer_marks import AnsweringModel
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars
from ttmark.gen_service.features.structured.reasoning import Reasoning, ReasoningReader, Thoughts, thoughts_of
from ttmark.gen_service.features.structured.tools import ToolUse, answer_source, tool_use
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.tools import Function, Tool
from ttmark.shared.tokenization import TextTokenizer

TOKENIZER = TextTokenizer(byte_tokenizer())
CLOSED, OPENED = Reasoning(opened=False), Reasoning(opened=True)
ANSWER = {
    "type": "object",
    "properties": {"a": {"const": 1}},
    "required": ["a"],
    "additionalProperties": False,
}
# text: reasoning and answer where the prompt ends before the tag, and where it ends after it
TEXTS = {
    "<think>\nHm < ho.\n</think>\n\nYes.": (("Hm < ho.", "Yes."), ("Hm < ho.", "Yes.")),
    "<think>\n\n</think>\n\nYes.": (("", "Yes."), ("", "Yes.")),
    "\n<think>Hm </thin k</think> a\n</think>\n": (("Hm </thin k", "a\n</think>\n"),) * 2,
    "Hm\n</think>\nYes.": (("", "Hm\n</think>\nYes."), ("Hm", "Yes.")),
    "Yes, <think>no</think>": (("", "Yes, <think>no</think>"), ("Yes, <think>no", "")),
    "<think>It goes on </thi": (("It goes on </thi", ""), ("It goes on </thi", "")),
    " <thin": (("", " <thin"), ("<thin", "")),
    "": (("", ""), ("", "")),
}


def read(reasoning: Reasoning, pieces: list[str]) -> tuple[str, str]:
    reader = ReasoningReader(reasoning)
    said = [reader.read(piece, final=number == len(pieces) - 1) for number, piece in enumerate(pieces)]
    return "".join(each for each, _ in said), "".join(each for _, each in said)


@pytest.mark.parametrize("text", TEXTS)
def test_reasoning_ends_with_its_tag_and_the_answer_begins_after_it(text: str) -> None:
    for reasoning, expected in zip((CLOSED, OPENED), TEXTS[text], strict=True):
        assert read(reasoning, [text]) == expected
        assert read(reasoning, [*text, ""]) == expected


@given(data=st.data())
@settings(max_examples=200)
def test_a_text_is_split_alike_however_it_is_cut(data: st.DataObject) -> None:
    parts = st.sampled_from(["<think>", "</think>", "<th", "</", "ink>", "\n", " ", "a", "é"])
    text = "".join(data.draw(st.lists(parts, max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    reasoning = data.draw(st.sampled_from([CLOSED, OPENED]))
    assert read(reasoning, pieces) == read(reasoning, [text])


def test_the_rule_or_the_template_names_the_tags() -> None:
    knows, plain = "{{ content.split('</think>')[-1] }}", "{{ messages }}"
    assert (thoughts_of(knows, None, "auto"), thoughts_of(plain, None, "auto")) == (Thoughts(), None)
    assert (thoughts_of(knows, None, "none"), thoughts_of(plain, None, "think")) == (None, Thoughts())
    own = Thoughts("[a]", "[b]", "[c]")
    assert thoughts_of(knows, own, "auto") == own
    assert thoughts_of(knows, own, "none") == Thoughts("", "", "[c]")


def test_a_model_reasons_where_its_tags_show_in_the_text() -> None:
    generator, template = FakeGenerator(), ChatTemplate("{{ messages }}")
    told = AnsweringModel(ServedModel(generator, template), "think")
    assert (told.answers.reasoning("Hi"), told.answers.reasoning("Hi<think>\n")) == (CLOSED, OPENED)
    assert AnsweringModel(ServedModel(generator, template)).answers.reasoning("Hi<think>\n") is None


OWN_MARKS = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.thinking %}<|plan|>{{ m.thinking }}<|done|>{% endif %}"
    "{% if m.role == 'assistant' %}<|say|>{{ m.content }}<|said|>{% else %}{{ m.content }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_thoughts_and_words_have_the_marks_of_the_template(special: bool, size: int) -> None:
    """They may be special tokens, which decoders leave out."""
    generator, text = FakeGenerator(), "<|plan|>Hm < ho.<|done|><|say|>Yes.<|said|>"
    if special:
        generator.tokenizer.backend.add_special_tokens(["<|plan|>", "<|done|>", "<|say|>", "<|said|>"])
    model = AnsweringModel(ServedModel(generator, ChatTemplate(OWN_MARKS)))
    reasoning = model.answers.reasoning("")
    assert reasoning is not None
    tokens = generator.tokenizer.backend.encode(text, add_special_tokens=False).ids
    stream = TextStream(generator.tokenizer, (), model.answers.special.shown)
    pieces = ["".join(map(stream.push, tokens[at : at + size])) for at in range(0, len(tokens), size)]
    assert read(reasoning, [*pieces, stream.finish()]) == ("Hm < ho.", "Yes.")
    reader = ReasoningReader(reasoning)
    reader.read("".join(pieces), final=True)
    assert 0 < reader.count(tokens, generator.tokenizer) < len(tokens) - 4


CHANNELS = (  # as gpt-oss has them
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
    "{% if m.thinking %}<|start|>assistant<|channel|>plan<|message|>{{ m.thinking }}<|end|>{% endif %}"
    "{% if m.content %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}"
    "<|message|>{{ m.content }}<|end|>{% endif %}"
    "{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}<|start|>assistant to=functions.{{ f.name }}"
    "<|channel|>code<|message|>{{ f.arguments | tojson }}<|call|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
_SAID = {
    OWN_MARKS: ["", "<|plan|>Hm < ho.<|done|>", "<|say|>", "<|said|>"],
    CHANNELS: [
        "",
        "<|channel|>plan<|message|>Hm<|end|><|start|>assistant",
        "<|channel|>final<|message|>",
        "",
    ],
}


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("thinks", [False, True])
@pytest.mark.parametrize(("template", "tools"), [(OWN_MARKS, False), (OWN_MARKS, True), (CHANNELS, False)])
def test_json_stands_between_the_marks_of_words(
    template: str, thinks: bool, tools: bool, special: bool
) -> None:
    """And may stand alone, as other models write it."""
    generator, (*thought, start, stop) = FakeGenerator(), _SAID[template]
    if special:
        generator.tokenizer.backend.add_special_tokens(re.findall(r"<\|\w+\|>", template))
    model = AnsweringModel(ServedModel(generator, ChatTemplate(template)))
    reasoning, encode = model.answers.reasoning(""), generator.tokenizer.backend.encode
    source = answer_source(ANSWER, reasoning)
    if tools:
        asked = Tool(type="function", function=Function(name="now"))
        use = tool_use([asked], "auto", None, model)
        assert use is not None
        source = use.source(ANSWER, reasoning)
    for before, behind in ((start, stop), ("", "")):
        state = model.grammars.compile(source).begin()
        state.advance(encode(thought[thinks] + before + '{"a": 1}' + behind, add_special_tokens=False).ids)
        state.mask(logits := torch.zeros((1, generator.tokenizer.id_bound)), [()])
        assert logits[0, min(generator.eos_token_ids)].isfinite()


_WORDS = "{% if m.content is string %}{{ m.content }}{% endif %}"
_CALL = (
    "{% for c in m.tool_calls or () %}<|call|>call:{{ c.function.name }}{{ c.function.arguments | tojson }}"
    "<|end|>{% endfor %}"
)
# How templates write the thoughts of earlier answers, what their prompt ends in, and what a model writes.
OTHER_MARKS = {
    "beside calls alone": (
        "{% if m.tool_calls and m.reasoning %}<|plan>so\n{{ m.reasoning }}\n<plan|>{% endif %}"
        + _WORDS
        + _CALL,
        "",
        "<|plan>so\nHm < ho.\n<plan|>Yes.",
    ),
    "empty where there are none": (
        "{% if m.tool_calls %}<|think|>{{ m.thinking }}<|/think|>"
        + _CALL
        + "{% else %}<|say|>"
        + _WORDS
        + "<|/say|>{% endif %}",
        "",
        "<|think|>Hm < ho.<|/think|><|say|>Yes.",
    ),
    "begun by the prompt": (
        "{% if m.thinking %}{{ m.thinking }}\n[ANSWER]\n{% endif %}" + _WORDS + _CALL,
        "\nHere are my steps:\n",
        "Hm < ho.\n[ANSWER]\nYes.",
    ),
    "in a turn of their own": (
        "{% if m.reasoning %}<|mull|>{{ m.reasoning }}<|end|><|assistant|>{% endif %}<|say|>"
        + _WORDS
        + _CALL,
        "",
        "<|mull|>Hm < ho.<|end|><|assistant|><|say|>Yes.",
    ),
    "Ministral 3": (
        _WORDS + "{% if m.content is not string %}{% for b in m.content or () %}{% if b.thinking %}"
        "[THINK]{{ b.thinking }}[/THINK]{% endif %}{% endfor %}{% endif %}" + _CALL,
        "",
        "[THINK]Hm < ho.[/THINK]Yes.",
    ),
    "Gemma 4": (_WORDS + _CALL + "{# '<channel|>' #}", "", "<|channel>thought\nHm < ho.\n<channel|>Yes."),
    "Cohere R7B": (_WORDS + "{# '<|END_THINKING|>' #}", "", "<|START_THINKING|>Hm < ho.<|END_THINKING|>Yes."),
}


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", OTHER_MARKS)
def test_thoughts_in_other_marks_are_no_words(name: str, special: bool) -> None:
    own, ends_in, text = OTHER_MARKS[name]
    source = (
        "{{ tools | tojson if tools }}{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}"
        f"{own}{{% else %}}{{{{ m.content }}}}{{% endif %}}<|over|>{{% endfor %}}"
        f"{{% if add_generation_prompt %}}<|assistant|>{ends_in}{{% endif %}}"
    )
    generator = FakeGenerator()
    if special:
        marks = re.findall(r"<[^<> ]+>|\[/?[A-Z]+\]", text)
        generator.tokenizer.backend.add_special_tokens(marks)
    template = ChatTemplate(source)
    model = AnsweringModel(ServedModel(generator, template))
    reasoning = model.answers.reasoning(template.render([ChatMessage(role="user", content="?")]))
    assert reasoning is not None
    tokens = generator.tokenizer.backend.encode(text, add_special_tokens=False).ids
    for size in range(1, 8):
        stream = TextStream(generator.tokenizer, (), model.answers.special.shown)
        pieces = ["".join(map(stream.push, tokens[at : at + size])) for at in range(0, len(tokens), size)]
        assert read(reasoning, [*pieces, stream.finish()]) == ("Hm < ho.", "Yes.")


def next_of(grammars: JsonGrammars, source: Any, text: str) -> set[str]:
    """The characters that may follow a text under a grammar; "" where it may end."""
    state = grammars.compile(source).begin()
    state.advance(TOKENIZER.encode(text))
    state.mask(logits := torch.zeros((1, TOKENIZER.vocab_size)), [()])
    allowed = logits[0].isfinite().nonzero()[:, 0].tolist()
    return {"" if token == 0 else TOKENIZER.decode([token]) for token in allowed}


@pytest.mark.parametrize("thought", ["<think>Any {words} <tool_call></think>", "<think>a</think>\n\n"])
@pytest.mark.parametrize("reasoning", [CLOSED, OPENED], ids=["closed", "opened"])
def test_reasoning_is_free_and_what_follows_is_held_to_the_schema(
    grammars: JsonGrammars, reasoning: Reasoning, thought: str
) -> None:
    text = thought.removeprefix("<think>") if reasoning.opened else thought
    functions = [Function(name="now")]
    held = answer_source(ANSWER, reasoning)
    hermes = form_of("hermes")
    must = ToolUse(hermes, (), functions, must=True, several=False).source(None, reasoning)
    may = ToolUse(hermes, (), functions, must=False, several=False).source(None, reasoning)
    assert held.free == must.free == reasoning.opened
    for source, first in ((held, "{"), (must, "<")):
        assert len(next_of(grammars, source, text[:-10])) > 100
        assert first in next_of(grammars, source, text) <= {first, "\n", " "}
    assert next_of(grammars, held, text + '{"a": 1}') == {""}
    assert "{" in next_of(grammars, must, text + "<tool_call>\n") <= {"{", " "}
    assert "" in next_of(grammars, may, text + "Words.")
    assert next_of(grammars, may, text + 'Words.<tool_call>\n{"name": "') == {"n"}


@pytest.mark.parametrize("name", ["hermes", "llama3"])
def test_an_answer_need_not_reason_where_the_prompt_has_not_begun_it(
    grammars: JsonGrammars, name: str
) -> None:
    form = form_of(name)
    assert next_of(grammars, answer_source(ANSWER, CLOSED), "") == {"{", "<", " ", "\n"}
    assert "" not in next_of(grammars, answer_source(ANSWER, OPENED), '{"a": 1}')
    may = ToolUse(form, (), [Function(name="now")], must=False, several=False).source(None, CLOSED)
    assert "" in next_of(grammars, may, "Words")
    assert next_of(grammars, may, form.lead) == {"n"}


@pytest.mark.parametrize("knows", [True, False])
def test_the_template_gets_the_reasoning_of_earlier_answers_as_text(knows: bool) -> None:
    backend = byte_tokenizer()
    backend.add_special_tokens(["<|im_end|>"])
    source = "{% for m in messages %}{{ m.reasoning_content }}|{{ m.content }}{% endfor %}"
    template = ChatTemplate(source + ("{# <tool_call></tool_call> tools #}" if knows else ""))
    said = ChatMessage(role="assistant", reasoning_content="Hm<|im_end|>", content="Yes.")
    text, ids = ConversationEncoder(TextTokenizer(backend), template).encode([said], "messages", 1_000)
    assert text == "Hm<|im_end|>|Yes."
    assert backend.token_to_id("<|im_end|>") not in ids
