"""`python -m tests.harness.real_templates [FOLDER]`: the chat templates of three pinned packages.

A stand-in for the model writes calls as each does, and whole answers with thoughts, words and two calls,
which are read in pieces of several lengths. Prompts with tools are held against transformers'.
"""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal, cast

from transformers.utils.chat_template_utils import render_jinja_template

from tests.contract.openai.fake_generator import FakeGenerator
from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.decoding.text_stream import TextStream
from ttmark.gen_service.features.structured.answer_marks import AnsweringModel
from ttmark.gen_service.features.structured.call_reader import CallReader
from ttmark.gen_service.features.structured.formats.tool_formats import ID, show_tools, system_text
from ttmark.gen_service.features.structured.grammars.grammar import GrammarFailed
from ttmark.gen_service.features.structured.grammars.json_grammar import SchemaRefused
from ttmark.gen_service.features.structured.learned_format import learned_of
from ttmark.gen_service.features.structured.reasoning import ReasoningReader, thoughts_of
from ttmark.gen_service.features.structured.tools import tool_use
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.tools import Tool
from ttmark.shared.tokenization import TextTokenizer

PACKAGES = {
    "llama_cpp_python==0.3.36": "vendor/llama.cpp/models/templates/",
    "trl==1.16.0": "trl/chat_templates/",
    "axolotl==0.19.0": "axolotl/utils/chat_templates/templates/",
}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
ASKED = ChatMessage(role="user", content="Please do it.")
_LOOKS_SPECIAL = re.compile(r'<\|[^<>\s]*\|>|<\uff5c[^<>\s]*\uff5c>|<\|[\w"]+>|<[\w"]+\|>|\[[A-Z_]{4,}\]')
_CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("lookup", {"word": "a b", "count": 3}),
    ("send", {"body": 'Hi "you",\n<b>', "flag": True}),
    ("now", {}),
)


_THOUGHT, _WORDS = "Hm < ho, {so}.", "Let me look: 1 < 2."
_TURN_END = "<|END_OF_TURN_TOKEN|>"  # of Cohere's models, whose templates write an opening behind it
_WRITTEN: dict[str, Any] = {"role": "assistant", "content": None}


def _history(calls: Sequence[tuple[str, dict[str, Any]]], **more: Any) -> list[dict[str, Any]]:
    """A question, an answer with calls, and what these gave, as clients hold them."""
    ids = [f"abcdefgh{number}" for number in range(len(calls))]
    made = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id_, (name, arguments) in zip(ids, calls, strict=True)
    ]
    results = [
        {"role": "tool", "tool_call_id": id_, "name": name, "content": "zqresult"}
        for id_, (name, _) in zip(ids, calls, strict=True)
    ]
    return [{"role": "user", "content": "Please do it."}, _WRITTEN | {"tool_calls": made} | more, *results]


SHOWN: dict[str, tuple[list[dict[str, Any]], int]] = {
    "one tool": (_history([])[:1], 1),
    "two tools": (_history([])[:1], 2),
    "a call and its result": (_history(_CALLS[:1]), 1),
    "the same after thoughts": (_history(_CALLS[:1], reasoning=_THOUGHT), 1),
    "after thoughts and words": (_history(_CALLS[:1], reasoning=_THOUGHT, content=_WORDS), 1),
    "two calls and results": (_history(_CALLS[:2], reasoning=_THOUGHT), 2),
    "two steps": (_history(_CALLS[:1], reasoning=_THOUGHT) + _history(_CALLS[:1], reasoning="So.")[1:], 1),
}


def fetched(folder: Path) -> Iterator[tuple[str, str]]:
    for package, inside in PACKAGES.items():
        kind = "--no-binary=:all:" if package.startswith("llama") else "--only-binary=:all:"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation", kind]
        name = package.partition("==")[0]
        if not list(folder.glob(f"{name}-*")):
            subprocess.run([*command, "-d", str(folder), package], check=True)
        (file,) = folder.glob(f"{name}-*")
        if file.suffix == ".whl":
            with zipfile.ZipFile(file) as wheel:
                found = {each: wheel.read(each) for each in wheel.namelist() if inside in each}
        else:
            with tarfile.open(file) as archive:
                members = [each for each in archive.getmembers() if inside in each.name and each.isfile()]
                found = {each.name: archive.extractfile(each).read() for each in members}  # type: ignore[union-attr]
        for path, source in sorted(found.items()):
            if path.endswith(".jinja"):
                yield f"{name}/{Path(path).stem}", source.decode()


def kind_of(source: str) -> str:
    """What becomes of a template: how its calls are learned, or why they are not."""
    template = ChatTemplate(source, SPECIAL)
    learned = learned_of(template)
    if learned.tools is None:
        return f"refused: tried {learned.refusal.partition(';')[0]}"
    if not learned.tools.writes:
        return "knows no tools: our words"
    faults = [fault for special in (False, True) if (fault := served(template, special=special))]
    how = "one by one" if learned.tools.tagged else "as JSON"
    return f"proved, arguments {how}" + (f", but {faults[0]}" if faults else "")


def written(template: ChatTemplate, call: tuple[str, dict[str, Any]]) -> tuple[str, str] | None:
    """The prompt and, behind it, a call as the template writes it; None: it does not show."""
    name, arguments = call
    made = {"id": "abcdefghi", "function": {"name": name, "arguments": json.dumps(arguments)}}
    answer = ChatMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [made]})
    result = ChatMessage(role="tool", tool_call_id="abcdefghi", content="zqresult")
    tools = [tool.model_dump(exclude_none=True) for tool in _tools(call)]
    for history in ([ASKED, answer], [ASKED, answer, result]):
        try:
            prompt = template.render([ASKED], tools=tools)
            text = template.render(history, tools=tools, opens_answer=False).split("zqresult")[0]
        except BadRequest:
            continue
        form = learned_of(template).tools
        assert form is not None
        start = text.rfind(re.split("[\x00-\x03]", form.lead)[0])
        close = re.split("[\x00-\x03]", form.close)[-1]
        return prompt, text[start : text.rfind(close) + len(close)] if close else text[start:].split("</s>")[
            0
        ]
    return None


def prompted(template: ChatTemplate, told: Sequence[dict[str, Any]], calls: int) -> str:
    """How the prompt of a conversation stands to transformers', which is told of `calls` tools: arguments as
    values and no content where there is none, or where it fails on that, as a text or an empty content.
    """
    form = learned_of(template).tools
    assert form is not None
    tools = [each.model_dump(exclude_none=True) for call in _CALLS[:calls] for each in _tools(call)]
    try:
        own = template.render([ChatMessage.model_validate(turn) for turn in told], tools=tools)
    except BadRequest:
        own = ""
    first = True
    for as_text, without in product((False, True), (None, {"content": ""}, {})):
        turns = json.loads(json.dumps(told))
        for turn in turns:
            if turn["content"] is None:
                turn.pop("content") if without is None else turn.update(without)
            for call in () if as_text else turn.get("tool_calls", ()):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        if not form.shows:
            show_tools(turns, system_text(form, tools), system=learned_of(template).takes_system)
        try:
            (theirs,) = render_jinja_template(
                [turns],
                tools if form.shows else None,
                chat_template=template.source,
                add_generation_prompt=True,
                **SPECIAL,
            )[0]
        except Exception:  # a template is foreign code
            first = False
            continue
        if own == theirs:
            return ("equal" if form.shows else "equal, with tools in words of ours") + (
                "" if first else ", told in another way"
            )
    return "transformers refuses it, and so do we" if not own and not first else "another one"


def answered(template: ChatTemplate, *, special: bool) -> str:
    """What is lost of an answer with thoughts, words (where calls have a mark) and calls; empty: nothing."""
    form = learned_of(template).tools
    assert form is not None
    calls = _CALLS[:2] if form.between is not None else _CALLS[:1]
    tools = [each for call in calls for each in _tools(call)]
    shown = [each.model_dump(exclude_none=True) for each in tools]
    variables = {"enable_thinking": True}
    prompt = template.render([ASKED], tools=shown, variables=variables)
    told = ({"content": _WORDS, "reasoning": _THOUGHT}, {"reasoning": _THOUGHT})
    for more, results in product(told[form.alone :], (len(calls), 0)):
        turns = _history(calls, **more)[: 2 + results]
        history = [ChatMessage.model_validate(turn) for turn in turns]
        try:
            text = template.render(history, tools=shown, variables=variables, opens_answer=False)
        except BadRequest:
            continue
        if all(text.count(name) > prompt.count(name) for name, _ in calls):
            break
    else:
        return "the template refuses it"
    text = text.partition("zqresult")[0]
    if not any(ID in mark for mark in form.marks):  # Apriel's writes ids once there are results
        text = re.sub(r', "id": "abcdefgh\d"', "", text)
    marks = thoughts_of(template.source, learned_of(template).thoughts, "auto")
    opening = marks.opening if marks is not None else ""
    opened = bool(opening) and prompt.rstrip().endswith(opening)
    lead = re.split("[\x00-\x03]", form.lead)[0]
    found = [at for each in (_WORDS, lead) if (at := text.rfind(each)) >= 0]
    if text.startswith(prompt):
        text = text[len(prompt) :]
    else:
        at = text.rfind(_THOUGHT)
        text = text[min(found) if at < 0 else text.rfind(opening, 0, at) :]
    if marks is not None and opening and _THOUGHT not in text:
        text = text.lstrip().removeprefix(opening).lstrip().removeprefix(marks.close).lstrip()
        text = f"{'' if opened else opening}\n{_THOUGHT}\n{marks.close}\n\n{text}"
    close = re.split("[\x00-\x03]", form.close)[-1].partition(_TURN_END)[0]
    text = text[: text.rfind(close) + len(close)] if close else re.split(r"</s>|<\|end\|>", text)[0]
    thoughts = _THOUGHT if opening else ""
    words = _WORDS if _WORDS in text else ""
    backend = byte_tokenizer()
    found_marks = sorted(set(_LOOKS_SPECIAL.findall(text))) if special else []
    backend.add_special_tokens([_TURN_END, *found_marks])
    generator = FakeGenerator()
    generator.tokenizer = TextTokenizer(backend)
    generator.eos_token_ids |= {backend.token_to_id(_TURN_END) or 0}
    model = AnsweringModel(ServedModel(cast(Any, generator), template))
    model.grammars._thread.shutdown(wait=False)
    reasoning, use = model.answers.reasoning(prompt), tool_use(tools, "auto", None, model)
    assert use is not None
    tokens = backend.encode(text, add_special_tokens=False).ids
    try:
        model.grammars.compile(use.source(None, reasoning)).begin().advance(tokens)
    except (GrammarFailed, SchemaRefused) as error:
        return f"the grammar forbids it ({str(error)[:60]})"
    for size in (*range(1, 8), len(tokens)):
        read = _read_all(model, use, reasoning, tokens, size)
        if read != (thoughts, words, list(calls)):
            return f"in pieces of {size} {text!r} is read as {read}"
    return ""


def _tools(call: tuple[str, dict[str, Any]]) -> list[Tool]:
    kinds = {str: "string", int: "integer", bool: "boolean"}
    properties: dict[str, Any] = {
        key: {"type": kinds[type(value)], "description": "One."} for key, value in call[1].items()
    }
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    if not properties:
        parameters["additionalProperties"] = False
    function = {"name": call[0], "description": "Does it.", "parameters": parameters}
    return [Tool.model_validate({"type": "function", "function": function})]


def served(template: ChatTemplate, *, special: bool) -> str:
    """What goes wrong when a model writes calls as the template does; empty: nothing."""
    told = [(call, said) for call in _CALLS if (said := written(template, call)) is not None]
    backend = byte_tokenizer()
    found = {mark for _, (_, text) in told for mark in _LOOKS_SPECIAL.findall(text)}
    backend.add_special_tokens(sorted(found) if special else [])
    generator = FakeGenerator()
    generator.tokenizer = TextTokenizer(backend)
    model = AnsweringModel(ServedModel(cast(Any, generator), template))
    model.grammars._thread.shutdown(wait=False)  # hundreds of them would not fit
    choices: tuple[Literal["auto", "required"], ...] = ("auto", "required")
    for call, (prompt, text) in told:
        reasoning = model.answers.reasoning(prompt)
        if reasoning is not None and reasoning.opened:
            thoughts = learned_of(template).thoughts
            text = f"Hm.{thoughts.close if thoughts and thoughts.opening else '</think>'}{text}"
        tokens = backend.encode(text, add_special_tokens=False).ids
        for choice in choices:
            use = tool_use(_tools(call), choice, None, model)
            assert use is not None
            try:
                model.grammars.compile(use.source(None, reasoning)).begin().advance(tokens)
            except (GrammarFailed, SchemaRefused) as error:
                return f"the grammar forbids its own call ({str(error)[:60]})"
        for size in (1, 2, 3, 7, len(tokens)):
            if (read := _read(model, use, reasoning, tokens, size)) != [call]:
                return f"{call} is read as {read}"
    return ""


def _read(model: AnsweringModel, use: Any, reasoning: Any, tokens: Sequence[int], size: int) -> Any:
    _, words, calls = _read_all(model, use, reasoning, tokens, size)
    return words or calls


def _read_all(
    model: AnsweringModel, use: Any, reasoning: Any, tokens: Sequence[int], size: int
) -> tuple[str, str, list[Any]]:
    """Thoughts, words and calls of an answer that comes in pieces of `size` tokens."""
    stream = TextStream(model.generator.tokenizer, (), model.answers.special.shown)
    reader, thoughts = CallReader(use.form, use.schemas), ReasoningReader(reasoning) if reasoning else None
    pieces = ["".join(map(stream.push, tokens[at : at + size])) for at in range(0, len(tokens), size)]
    calls: list[list[str]] = []
    thought = words = ""
    for number, piece in enumerate([*pieces, stream.finish()]):
        final = number == len(pieces)
        thinks, text = thoughts.read(piece, final=final) if thoughts else ("", piece)
        thought += thinks
        said, made = reader.read(text, final=final)
        words += said
        for each in made:
            if each.function.name is not None:
                calls.append([each.function.name, ""])
            calls[-1][1] += each.function.arguments
    try:
        return thought.strip(), words.strip(), [(name, json.loads(given)) for name, given in calls]
    except ValueError:
        return thought.strip(), words.strip(), calls


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, dict[str, list[str]]] = {}
    for name, source in fetched(folder):
        template = ChatTemplate(source, SPECIAL)
        said = {"what becomes of it": kind_of(source)}
        form = learned_of(template).tools
        if form is not None and form.writes:
            said |= {f"prompt: {case}": prompted(template, *told) for case, told in SHOWN.items()}
            faults = [fault for special in (False, True) if (fault := answered(template, special=special))]
            said["thoughts, words and two calls"] = faults[0] if faults else "read whole"
        for table, kind in said.items():
            tables.setdefault(table, {}).setdefault(kind, []).append(name)
    for table, kinds in tables.items():
        print(f"\n| {table} | of {sum(map(len, kinds.values()))} templates |\n|---|---|")
        for kind, names in sorted(kinds.items(), key=lambda each: -len(each[1])):
            print(f"| {kind} | {len(names)} |" + ("" if len(names) > 40 else f" <!-- {', '.join(names)} -->"))


if __name__ == "__main__":
    main()
