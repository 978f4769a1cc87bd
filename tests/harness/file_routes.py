"""`python -m tests.harness.file_routes SMOLLM2 [WORD...]`: what is left of marked answers elsewhere.

Nine answers go through pandoc, LibreOffice, python-docx and others, as files and as texts to paste. Prints
the share of log10 p that is kept, for routes whose name holds a WORD.
"""

import gzip
import io
import json
import re
import subprocess
import sys
import tempfile
import textwrap
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import docx

import ttmark
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.library.tokenizer import text_tokenizer
from ttmark.shared.schemas.profile import Profile

RANGE = (-37.0, -13.0)
KINDS = {
    "bold list": re.compile(r"^\d+\. \*\*", re.M),
    "plain list": re.compile(r"\A(?!.*\*\*).*^\d+\. .*^2\. ", re.M | re.S),
    "prose": re.compile(r"\A(?!.*^(?:\d+\.|-|```)).*\n\n.*\n\n", re.M | re.S),
}


ANSWERS = Path(__file__).parents[2] / "docs/results/found-read-answers.jsonl.gz"
TYPOGRIFY = """
import sys, html
from typogrify.filters import smartypants
sys.stdout.write(html.unescape(smartypants(sys.stdin.read())))
"""


class Answer(NamedTuple):
    """A marked answer, and how sure its mark is as written."""

    kind: str
    key: ttmark.Key
    text: str
    log10_p: float


def rows() -> list[dict[str, Any]]:
    with gzip.open(ANSWERS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def answer_of(row: dict[str, Any], kind: str, model: str) -> Answer:
    """A row as it is found where it was written."""
    fingerprint = text_tokenizer(model).fingerprint
    profile = Profile(
        scheme="gumbel", block_size=2, context_width=2, parameters={}, tokenizer_fingerprint=fingerprint
    )
    key = ttmark.Key(None, ((profile, (bytes.fromhex(row["prf_key"]),)),))
    return Answer(kind, key, row["text"], ttmark.detect(row["text"], key, model=model).log10_p)


def chosen(model: str, count: int = 3) -> Iterator[Answer]:
    """The first answers of each kind, by their order in the file."""
    left = dict.fromkeys(KINDS, count)
    for row in rows():
        kind = next((name for name, form in KINDS.items() if form.search(row["text"])), None)
        if row["form"] in ("chat", "list") and kind is not None and left[kind]:
            answer = answer_of(row, kind, model)
            if RANGE[0] <= answer.log10_p <= RANGE[1]:
                left[kind] -= 1
                yield answer


def print_table(routes: Mapping[str, Callable[[str], str]], answers: Sequence[Answer], model: str) -> None:
    """A row for each route: the share of log10 p that is kept, on the mean of each kind and of all."""
    kinds = dict.fromkeys(answer.kind for answer in answers)
    titles = ["route", *kinds, "all", "least", "found at 1e-5"]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for name, route in routes.items():
        shares: dict[str, list[float]] = {kind: [] for kind in kinds}
        found = 0
        for answer in answers:
            result: Any = ttmark.detect(route(answer.text), answer.key, model=model)
            found += result.verdict == "watermarked"
            shares[answer.kind].append(min(result.log10_p / answer.log10_p, 1.0))
        every = [share for each in shares.values() for share in each]
        numbers = [*map(mean, shares.values()), mean(every), min(every)]
        shown = " | ".join(f"{share:.2f}" for share in numbers)
        print(f"| {name} | {shown} | {found} of {len(every)} |", flush=True)


def python_with(folder: Path, *packages: str) -> str:
    """A Python in the folder that has packages of PyPI."""
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return str(python)


def run(*command: str, text: str = "") -> bytes:
    return subprocess.run(command, input=text.encode(), check=True, capture_output=True).stdout


def pandoc(ending: str, source: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"a.{ending}"
        run("pandoc", "-s", "-f", source, "-o", str(file), "--metadata", "title= ", text=text)
        return file.read_bytes()


def libreoffice(ending: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "a.html"
        page.write_bytes(pandoc("html", "markdown-smart", text))
        filters = {"docx": "docx:MS Word 2007 XML", "odt": "odt:writer8", "rtf": "rtf:Rich Text Format"}
        run("soffice", "--headless", "--convert-to", filters[ending], "--outdir", folder, str(page))
        return (Path(folder) / f"a.{ending}").read_bytes()


def word_numbers(text: str) -> bytes:
    document = docx.Document()
    for line in filter(str.strip, text.split("\n")):
        item = re.match(r"\d+\. (.*)", line)
        paragraph = document.add_paragraph(style="List Number" if item else None)
        for number, piece in enumerate((item[1] if item else line).split("**")):
            paragraph.add_run(piece).bold = number % 2 == 1
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def mail(text: str) -> bytes:
    message = EmailMessage()
    message["Subject"] = "Notes"
    message.set_content(pandoc("html", "markdown-smart", text).decode(), subtype="html")
    return message.as_bytes()


def reply(text: str) -> bytes:
    """A mail in plain text that quotes the answer, and has more lines of its own."""
    quoted = ["> " + line for part in text.split("\n") for line in textwrap.wrap(part, 70) or [""]]
    own = (Path(ttmark.__file__).parent / "services/cli/human_text.txt").read_text("utf-8").splitlines()
    own *= 2 + len(quoted) // len(own)
    message = EmailMessage()
    message.set_content("\n".join([*own, "", "On Tue, 3 Nov 2026 at 09:12, Ann wrote:", "", *quoted]))
    return message.as_bytes()


def pasted(form: str, source: str, text: str) -> str:
    return run("pandoc", "-f", source, "-t", form, text=text).decode()


def typogrified(text: str) -> str:
    return run(python_with(Path("/tmp/typogrify"), "typogrify==2.1.0"), "-c", TYPOGRIFY, text=text).decode()


def wrapped(width: int, blanks: str, text: str) -> str:
    wrap = partial(textwrap.wrap, width=width, initial_indent=blanks, subsequent_indent=blanks)
    return "\n".join(one for line in text.split("\n") for one in wrap(line) or [""])


def from_file(name: str, text: str) -> str:
    return extract_text(name, FILES[name](text)).text


ENDINGS = ("docx", "odt", "rtf", "epub", "html")
FILES: dict[str, Callable[[str], bytes]] = {
    **{f"pandoc.{ending}": partial(pandoc, ending, "markdown-smart") for ending in ENDINGS},
    **{f"pandoc, curly quotes.{ending}": partial(pandoc, ending, "markdown") for ending in ENDINGS},
    **{f"LibreOffice.{ending}": partial(libreoffice, ending) for ending in ("docx", "odt", "rtf")},
    "a list that Word numbers.docx": word_numbers,
    "mail.eml": mail,
    "a reply, more own than quoted lines.eml": reply,
}
PASTES: dict[str, Callable[[str], str]] = {
    "paste untouched": str,
    "paste with Windows line ends": lambda text: text.replace("\n", "\r\n"),
    "paste of 72 columns": partial(wrapped, 72, ""),
    "paste of 76 columns, indented by two": partial(wrapped, 76, "  "),
    **{
        f"paste of pandoc's {form}": partial(pasted, form, "markdown-smart")
        for form in ("plain", "rst", "org", "asciidoc")
    },
    "paste of pandoc's plain, curly quotes": partial(pasted, "plain", "markdown"),
    "paste of typogrify": typogrified,
}


def main() -> None:
    model, *words = sys.argv[1:]
    routes: dict[str, Callable[[str], str]] = {name: partial(from_file, name) for name in FILES} | PASTES
    wanted = {name: route for name, route in routes.items() if any(one in name for one in words or [""])}
    print_table(wanted, list(chosen(model)), model)


if __name__ == "__main__":
    main()
