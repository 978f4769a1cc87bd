"""`python -m tests.harness.pdf_routes FOLDER SMOLLM2`: how much of a mark is left in PDFs of marked answers.

FOLDER gets the programs of PyPI and the PDFs, which `--again` reads. It needs Debian's chromium, groff,
libreoffice-writer, wkhtmltopdf, hyphen-en-us and fonts-liberation.
"""

import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.harness.file_routes import answer_of, print_table, python_with, rows, run
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text

CHOSEN = {"prose": (10, 12, 38, 107), "dialogue": (8, 128, 248), "list": (3, 13, 24, 51, 126, 129, 176)}
PACKAGES = ("fpdf2==2.8.9", "markdown==3.11.3", "weasyprint==70.0")
PAGE = "<!doctype html><html lang=en><meta charset=utf-8><style>{}</style><body>{}</body></html>"
PRINTED = "body { font: 11pt/1.4 'Liberation Serif' }"
HYPHENATED = PRINTED + " p, li { hyphens: auto; text-align: justify }"
COLUMNS = HYPHENATED + " body { columns: 2; column-gap: 8mm }"

MARKDOWN = """
import sys, markdown
print(markdown.markdown(sys.stdin.read(), extensions=["sane_lists", "fenced_code", "nl2br"]))
"""
WEASYPRINT = """
import sys, weasyprint
weasyprint.HTML(string=sys.stdin.read()).write_pdf(sys.argv[1])
"""
FPDF2 = """
import sys, fpdf
page = fpdf.FPDF()
page.add_font("s", fname="/usr/share/fonts/truetype/liberation/LiberationSerif-Regular.ttf")
page.add_page()
page.set_font("s", size=12)
page.multi_cell(0, 6, sys.stdin.read())
page.output(sys.argv[1])
"""


class Routes:
    """Ways from Markdown to a PDF; each takes the text and the file to make."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._python = python_with(folder / "programs", *PACKAGES)

    def all(self) -> dict[str, Callable[[str, Path], None]]:
        return {
            "Chromium": lambda text, file: self._chromium(text, file, "", PRINTED),
            "Chromium, two columns": lambda text, file: self._chromium(text, file, "", COLUMNS),
            "fpdf2": self._fpdf2,
            "groff": self._groff,
            "LibreOffice": lambda text, file: self._office(text, file, PRINTED),
            "LibreOffice, hyphenated": lambda text, file: self._office(text, file, HYPHENATED),
            "WeasyPrint": lambda text, file: self._weasyprint(text, file, PRINTED),
            "WeasyPrint, hyphenated": lambda text, file: self._weasyprint(text, file, HYPHENATED),
            "WeasyPrint, two columns": lambda text, file: self._weasyprint(text, file, COLUMNS),
            "wkhtmltopdf": self._wkhtmltopdf,
        }

    def _here(self, program: str, text: str, *arguments: object) -> str:
        return run(self._python, "-c", program, *map(str, arguments), text=text).decode()

    def _fpdf2(self, text: str, file: Path) -> None:
        self._here(FPDF2, text, file)

    def _page(self, text: str, style: str) -> Path:
        file = self._folder / "page.html"
        file.write_text(PAGE.format(style, self._here(MARKDOWN, text)), encoding="utf-8")
        return file

    def _weasyprint(self, text: str, file: Path, style: str) -> None:
        self._here(WEASYPRINT, self._page(text, style).read_text(encoding="utf-8"), file)

    def _chromium(self, text: str, file: Path, option: str, style: str) -> None:
        page = self._page(text, style)
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer")
        run("chromium", *options, f"--print-to-pdf={file}", page.as_uri())

    def _wkhtmltopdf(self, text: str, file: Path) -> None:
        run("wkhtmltopdf", "-q", str(self._page(text, PRINTED)), str(file))

    def _office(self, text: str, file: Path, style: str) -> None:
        page = self._page(text, style)
        kept = f"-env:UserInstallation={(self._folder / 'office').as_uri()}"
        for source, kind in ((page, "odt:writer8"), (page.with_suffix(".odt"), "pdf:writer_pdf_Export")):
            infilter = ["--infilter=HTML (StarWriter)"] if source is page else []
            run(
                "soffice",
                kept,
                "--headless",
                *infilter,
                "--convert-to",
                kind,
                "--outdir",
                str(self._folder),
                str(source),
            )
            if source is page and style is HYPHENATED:
                _hyphenate(page.with_suffix(".odt"))
        page.with_suffix(".pdf").replace(file)

    def _groff(self, text: str, file: Path) -> None:
        lines = [".nr PS 11", ".nr VS 14"]
        for line in text.replace("\\", "\\e").split("\n"):
            item = re.match(r"\s*([0-9]+\.|[-*]) (.*)", line)
            if not line.strip():
                continue
            written = item[2] if item else line.lstrip("# ")
            mark = (item[1] if item[1][0].isdigit() else "\\(bu") if item else ""
            lines.append(f".IP {mark} 3" if item else ".LP")
            lines.append("\\&" + re.sub(r"\*\*(.+?)\*\*", r"\\fB\1\\fP", written))
        with file.open("wb") as made:
            source = "\n".join(lines).encode("utf-8")
            subprocess.run(["groff", "-K", "utf8", "-ms", "-Tpdf"], input=source, stdout=made, check=True)


def _hyphenate(file: Path) -> None:
    """Turns hyphenation on for all paragraphs of an odt, as the page's style asks."""
    import zipfile

    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name in ("styles.xml", "content.xml"):
        text = parts[name].replace(b'fo:hyphenate="false"', b'fo:hyphenate="true"')
        parts[name] = text.replace(b"<style:text-properties ", b'<style:text-properties fo:hyphenate="true" ')
        parts[name] = re.sub(rb'(fo:hyphenate="true")([^>]*) fo:hyphenate="true"', rb"\1\2", parts[name])
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def text_of(folder: Path, name: str, make: Callable[[str, Path], None], text: str) -> str:
    file = folder / f"{re.sub('[^a-z0-9]+', '-', name.lower())}-{zlib.crc32(text.encode())}.pdf"
    if "--again" not in sys.argv or not file.exists():
        make(text, file)
    return extract_text(file.name, file.read_bytes()).text


def main() -> None:
    folder, model = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    by_index = {row["index"]: row for row in rows() if row["form"] == "chat"}
    answers = [answer_of(by_index[one], kind, model) for kind, indices in CHOSEN.items() for one in indices]
    routes = {name: partial(text_of, folder, name, make) for name, make in Routes(folder).all().items()}
    print_table(routes, answers, model)


if __name__ == "__main__":
    main()
