"""`python -m tests.harness.real_files WORK [FOLDER ...]`: words of real files beside those of other programs.

WORK gets pinned packages whose tests have files; those of FOLDERs are taken, too. Each is read as by the
service and compared with another program. Prints each file that differs with its words, then the table. It
needs Debian's libreoffice-writer, chromium, poppler-utils and poppler-data, and npm.
"""

import asyncio
import mailbox
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Error, Route, sync_playwright

from ttmark.detect_service.features.files.text.extraction import UnreadableFile
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers

PYPI = (
    *("python-docx==1.2.0", "odfdo==3.27.3", "odfpy==1.4.1", "ezodf==0.3.2"),
    *("py3o.template==0.10.0", "relatorio==1.0.0", "secretary==0.2.19", "html2text==2025.4.15"),
    *("inscriptis==2.7.6", "html2docx==1.6.0", "html-text==0.7.1", "trafilatura==2.3.1", "talon==1.4.4"),
    *("pypdf==7.1.1", "pypdfium2==5.15.2", "pikepdf==10.17.0", "ocrmypdf==17.13.0"),
)
NPM = ("mammoth@1.13.0", "docx4js@3.3.0", "node-mbox@2.0.0")
DEBIAN = ("pandoc=2.17.1.1-2~deb12u1", "unrtf=0.21.10-clean-1")
OFFICE = frozenset({"docx", "odt", "rtf"})
BESIDE = {
    **dict.fromkeys(sorted(OFFICE), "LibreOffice"),
    **dict.fromkeys(("html", "epub"), "Chromium"),
    "pdf": "pdftotext",
    "eml": "Python",
    "mbox": "Python",
}
SECONDS = 60
_KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SOURCES = f"deb-src [signed-by={_KEY}] http://deb.debian.org/debian bookworm main\n"
# Chinese and Japanese have no blanks between words.
_WORD = re.compile(r"[\u3041-\u9fff]|[^\W_\u3041-\u9fff]+")
_EMPHASIS, _HYPHENS = re.compile("[*`\u00ad]+"), re.compile(r"(?<=\w)[-\u2010\u2011]\s*(?=\w)")
# Numbers of lists and fences of code, which neither `innerText` nor other readers have.
_MARKERS = re.compile(r"^[> \t]*(?:[\w.]{1,6}[.)][ \t]|```.*)", re.M)


class Difference(NamedTuple):
    """Words by which two readers differ; `kind`: other `letters`, or the same ones in other `words`."""

    kind: str
    lacking: Counter[str]
    added: Counter[str]


def difference(ours: str, theirs: str) -> Difference:
    """Words of two texts, whatever their order, hyphens and emphasis; numbers of lists may be missing."""
    mine, others, numbers = map(_words, (ours, theirs, "\n".join(_MARKERS.findall(ours))))
    letters, their_letters = (Counter("".join(words.elements())) for words in (mine, others))
    marks = Counter("".join(numbers.elements()))
    lacking, added = others - mine, mine - others - numbers
    kind = "letters" if their_letters - letters or letters - their_letters - marks else "words"
    return Difference(kind if lacking or added else "", lacking, added)


def _words(text: str) -> Counter[str]:
    plain = _EMPHASIS.sub("", unicodedata.normalize("NFKC", text).casefold())
    return Counter(_WORD.findall(_HYPHENS.sub("", plain)))


def fetch(folder: Path) -> None:
    (folder / "build.txt").write_text("setuptools<80\n")  # what older packages are built with
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "src.list").write_text(_SOURCES)
    for package in PYPI:
        pip = f"-m pip download -q --no-deps -d pypi --no-binary {package.partition('==')[0]} {package}"
        _run(sys.executable, *pip.split(), folder=folder, PIP_CONSTRAINT=str(folder / "build.txt"))
    for package in NPM:
        _run("npm", "pack", "--silent", package, folder=folder)
    places = {"Dir::Etc::SourceList": "src.list", "Dir::State::Lists": "lists", "Dir::Cache": "cache"}
    options = [f"-o{name}={folder / place}" for name, place in places.items()]
    apt = ("apt-get", "-qq", "-oAPT::Sandbox::User=root", "-oDir::Etc::SourceParts=-", *options)
    _run(*apt, "update", folder=folder)
    _run(*apt, "source", "--download-only", *DEBIAN, folder=folder)
    for archive in sorted([*folder.rglob("*.tar.gz"), *folder.glob("*.tgz")]):
        with tarfile.open(archive) as packed:
            packed.extractall(folder / "files" / archive.name.removesuffix(".tar.gz"), filter="data")


def _run(*command: object, folder: Path | None = None, seconds: int = SECONDS, **environment: str) -> bytes:
    bounded = ("timeout", "-k5", str(seconds), *map(str, command))  # with what it starts
    surroundings = {**os.environ, **environment}
    return subprocess.run(bounded, cwd=folder, env=surroundings, check=True, capture_output=True).stdout


async def ours(files: Sequence[Path]) -> dict[Path, str]:
    """The text of each file; of one that is refused, nothing."""
    read: dict[Path, str] = {}
    async with ExtractionWorkers() as workers:
        for file in files:
            try:
                found = await workers.extract(f"a{file.suffix.lower()}", file.read_bytes())
            except UnreadableFile as error:
                print(f"{file}: refused: {error}")
            else:
                read[file] = "\n".join([found.text, *(part.text for part in found.parts)])
                if found.unread:
                    print(f"{file}: unread: {found.unread}")
    return read


def office(files: Sequence[Path], folder: Path) -> Iterator[tuple[Path, str]]:
    """By LibreOffice, all at once, then one by one those at which it stopped."""
    copies = {folder / f"{number}{file.suffix.lower()}": file for number, file in enumerate(files)}
    for copy, file in copies.items():
        shutil.copyfile(file, copy)
    user = f"-env:UserInstallation={(folder / 'user').as_uri()}"
    command = ("soffice", user, "--headless", "--convert-to", "txt:Text (encoded):UTF8")
    for group in ([*copies], *([copy] for copy in copies)):
        left = [copy for copy in group if not copy.with_suffix(".txt").exists()]
        if left:
            with suppress(subprocess.SubprocessError):
                _run(*command, *left, folder=folder, seconds=SECONDS + len(left))
    for copy, file in copies.items():
        if (made := copy.with_suffix(".txt")).exists():
            yield file, made.read_text("utf-8-sig")


def chromium(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """By Chromium, which may open nothing but files on this machine."""

    def guarded(route: Route) -> None:
        route.continue_() if route.request.url.startswith("file://") else route.abort()

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_context(offline=True).new_page()
        page.route("**/*", guarded)
        for file in files:
            with suppress(Error):
                page.goto(file.as_uri(), wait_until="domcontentloaded", timeout=SECONDS * 1000)
                yield file, page.evaluate("document.body.innerText")


def pages(file: Path, folder: Path) -> list[Path]:
    """The pages of a book, unpacked, with what they need."""
    with zipfile.ZipFile(file) as book:
        book.extractall(folder / file.name)
        return [folder / file.name / name for name in book.namelist() if re.search(r"html?$", name)]


def mails(file: Path) -> str:
    """By Python's packages: a text of each mail."""
    box = mailbox.mbox(file) if file.suffix == ".mbox" else [file.read_bytes()]
    each = (mail if isinstance(mail, bytes) else mail.as_bytes() for mail in box)
    parsed = (message_from_bytes(mail, _class=EmailMessage, policy=policy.default) for mail in each)
    bodies = (mail.get_body(("plain", "html")) for mail in parsed)
    return "\n".join(body.get_content() for body in bodies if body)


def beside(kind: str, files: Sequence[Path], folder: Path) -> dict[Path, str]:
    """The texts of files of a kind by another program, of those that it reads."""
    if kind in OFFICE:
        return dict(office(files, folder))
    if kind in ("html", "epub"):
        leaves = {file: [file] if kind == "html" else pages(file, folder) for file in files}
        shown = dict(chromium([page for each in leaves.values() for page in each]))
        return {file: "\n".join(shown.get(page, "") for page in each) for file, each in leaves.items()}
    read = {}
    for file in files:
        with suppress(subprocess.SubprocessError, LookupError, ValueError, KeyError):
            read[file] = _run("pdftotext", file, "-").decode() if kind == "pdf" else mails(file)
    return read


def main() -> None:
    work, *more = map(Path, sys.argv[1:])
    if not (work / "files").exists():
        fetch(work)
    found: dict[str, list[Path]] = defaultdict(list)
    for top in (work / "files", *more):
        for file in sorted(top.rglob("*")):
            kind = {"htm": "html"}.get(ending := file.suffix.lower()[1:], ending)
            if kind in BESIDE and file.is_file():
                found[kind].append(file)
    titles = ("format", "files", "beside", "read by both", "divided otherwise", "other words")
    rows = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for kind, files in found.items():
        read = asyncio.run(ours(files))
        with tempfile.TemporaryDirectory() as folder:
            others = beside(kind, files, Path(folder))
        kinds = Counter[str]()
        for file in files:
            if file not in read or file not in others:
                continue
            said = difference(read[file], others[file])
            kinds[said.kind] += 1
            if said.kind:
                shown = (f"{words.total()} {list(words)[:12]}" for words in said[1:])
                print(f"{file}: {said.kind}: lacking {', added '.join(shown)}", flush=True)
        numbers = (len(files), BESIDE[kind], kinds.total(), kinds["words"], kinds["letters"])
        rows.append("| " + " | ".join(map(str, (kind, *numbers))) + " |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
