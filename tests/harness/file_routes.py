"""`python -m tests.harness.file_routes ANSWERS SMOLLM2 [COUNT]`: what is left of marked answers in files.

ANSWERS is a file of `tests.harness.marked_answers`, SMOLLM2 the model's folder. COUNT answers of each kind
whose log10 p is between -37 and -13 go through pandoc, LibreOffice and python-docx into files, which are read
and asked about as the service does. Prints a table of the share of log10 p that is kept.
"""

import io
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import docx

import ttmark
from ttmark.detect_service.extraction.readers_by_format import extract_text
from ttmark.library.tokenizer import text_tokenizer
from ttmark.shared.schemas.profile import Profile

RANGE = (-37.0, -13.0)
KINDS = {
    "bold list": re.compile(r"^\d+\. \*\*", re.M),
    "plain list": re.compile(r"\A(?!.*\*\*).*^\d+\. .*^2\. ", re.M | re.S),
    "prose": re.compile(r"\A(?!.*^(?:\d+\.|-|```)).*\n\n.*\n\n", re.M | re.S),
}


class Answer(NamedTuple):
    """A marked answer, and how sure its mark is as written."""

    kind: str
    key: ttmark.Key
    text: str
    log10_p: float


def chosen(file: Path, folder: str, count: int) -> Iterator[Answer]:
    """The first answers of each kind, by their order in the file."""
    fingerprint = text_tokenizer(folder).fingerprint
    profile = Profile(
        scheme="gumbel", block_size=2, context_width=2, parameters={}, tokenizer_fingerprint=fingerprint
    )
    left = dict.fromkeys(KINDS, count)
    for line in file.read_text("utf-8").splitlines():
        said = json.loads(line)
        kind = next((name for name, form in KINDS.items() if form.search(said["text"])), None)
        if said["form"] not in ("chat", "list") or kind is None or not left[kind]:
            continue
        key = ttmark.Key(None, ((profile, (bytes.fromhex(said["prf_key"]),)),))
        log10_p = ttmark.detect(said["text"], key, model=folder).log10_p
        if RANGE[0] <= log10_p <= RANGE[1]:
            left[kind] -= 1
            yield Answer(kind, key, said["text"], log10_p)


def pandoc(ending: str, source: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"a.{ending}"
        command = ["pandoc", "-s", "-f", source, "-o", str(file), "--metadata", "title= "]
        subprocess.run(command, input=text.encode(), check=True, capture_output=True)
        return file.read_bytes()


def libreoffice(ending: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "a.html"
        page.write_bytes(pandoc("html", "markdown-smart", text))
        filters = {"docx": "docx:MS Word 2007 XML", "odt": "odt:writer8", "rtf": "rtf:Rich Text Format"}
        command = ["soffice", "--headless", "--convert-to", filters[ending], "--outdir", folder, str(page)]
        subprocess.run(command, check=True, capture_output=True)
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


ENDINGS = ("docx", "odt", "rtf", "epub", "html")
ROUTES: dict[str, Callable[[str], bytes]] = {
    **{f"pandoc.{ending}": partial(pandoc, ending, "markdown-smart") for ending in ENDINGS},
    **{f"pandoc, curly quotes.{ending}": partial(pandoc, ending, "markdown") for ending in ENDINGS},
    **{f"LibreOffice.{ending}": partial(libreoffice, ending) for ending in ("docx", "odt", "rtf")},
    "a list that Word numbers.docx": word_numbers,
    "mail.eml": mail,
    "a reply, more own than quoted lines.eml": reply,
}


def main() -> None:
    """Prints the table."""
    file, folder, *more = sys.argv[1:]
    answers = list(chosen(Path(file), folder, int(more[0]) if more else 3))
    titles = ["route", *KINDS, "all", "least", "found at 1e-5"]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for name, route in ROUTES.items():
        shares: dict[str, list[float]] = {kind: [] for kind in KINDS}
        found = 0
        for answer in answers:
            text = extract_text(name, route(answer.text)).text
            result: Any = ttmark.detect(text, answer.key, model=folder)
            found += result.verdict == "watermarked"
            shares[answer.kind].append(min(result.log10_p / answer.log10_p, 1.0))
        every = [share for each in shares.values() for share in each]
        numbers = [*map(mean, shares.values()), mean(every), min(every)]
        print(
            f"| {name} | " + " | ".join(f"{share:.2f}" for share in numbers) + f" | {found} of {len(every)} |"
        )


if __name__ == "__main__":
    main()
