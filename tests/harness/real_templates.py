"""The table of tool-call formats among the chat templates of three packages, outside CI.

    python -m tests.harness.real_templates [FOLDER]

Fetches the packages with pip (pinned) into FOLDER, learns each template, and has a stand-in for the model
write calls as the template does: marks as text and as special tokens, in pieces of several lengths. It takes
some minutes.
"""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal, cast

from tests.contract.openai.fake_generator import FakeGenerator
from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.api.call_reader import CallReader
from ttmark.gen_service.api.chat_template import ChatTemplate
from ttmark.gen_service.api.reasoning import ReasoningReader
from ttmark.gen_service.api.tools import tool_use
from ttmark.gen_service.decoding.grammar import GrammarFailed
from ttmark.gen_service.decoding.json_grammar import SchemaRefused
from ttmark.gen_service.decoding.sequence import TextStream
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.chat import ChatMessage
from ttmark.shared.schemas.tools import Tool
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


def fetched(folder: Path) -> Iterator[tuple[str, str]]:
    """Names and sources of all templates."""
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
    learned = template.learned
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
        form = template.learned.tools
        assert form is not None
        start = text.rfind(re.split("[\x00-\x03]", form.lead)[0])
        close = re.split("[\x00-\x03]", form.close)[-1]
        return prompt, text[start : text.rfind(close) + len(close)] if close else text[start:].split("</s>")[
            0
        ]
    return None


def _tools(call: tuple[str, dict[str, Any]]) -> list[Tool]:
    kinds = {str: "string", int: "integer", bool: "boolean"}
    properties: dict[str, Any] = {key: {"type": kinds[type(value)]} for key, value in call[1].items()}
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
    model = ServedModel(cast(Any, generator), template)
    model.grammars._thread.shutdown(wait=False)  # hundreds of them would not fit
    choices: tuple[Literal["auto", "required"], ...] = ("auto", "required")
    for call, (prompt, text) in told:
        reasoning = model.reasoning(prompt)
        if reasoning is not None and reasoning.opened:
            thoughts = template.learned.thoughts
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


def _read(model: ServedModel, use: Any, reasoning: Any, tokens: Sequence[int], size: int) -> Any:
    stream = TextStream(model.generator.tokenizer, (), model.answers.special.shown)
    reader, thoughts = CallReader(use.form, use.schemas), ReasoningReader(reasoning) if reasoning else None
    pieces = ["".join(map(stream.push, tokens[at : at + size])) for at in range(0, len(tokens), size)]
    calls: list[list[str]] = []
    words = ""
    for number, piece in enumerate([*pieces, stream.finish()]):
        final = number == len(pieces)
        text = thoughts.read(piece, final=final)[1] if thoughts else piece
        said, made = reader.read(text, final=final)
        words += said
        for each in made:
            if each.function.name is not None:
                calls.append([each.function.name, ""])
            calls[-1][1] += each.function.arguments
    try:
        return [(name, json.loads(given)) for name, given in calls] if not words.strip() else words
    except ValueError:
        return calls


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, list[str]] = {}
    for name, source in fetched(folder):
        kinds.setdefault(kind_of(source), []).append(name)
    counts = Counter({kind: len(names) for kind, names in kinds.items()})
    print(f"| what becomes of it | of {counts.total()} templates |\n|---|---|")
    for kind, count in counts.most_common():
        print(f"| {kind} | {count} |" + ("" if count > 40 else f" <!-- {', '.join(kinds[kind])} -->"))


if __name__ == "__main__":
    main()
