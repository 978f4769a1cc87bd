"""What becomes of a text that is copied from one program into another: it is laid out, and read again."""

import re
import textwrap
from collections.abc import Callable
from email.message import EmailMessage
from html import escape

import numpy as np

from ttmark.evaluation.text_edits import Edit, Material

Read = Callable[[str, bytes], str]
"""The text of a file, by its name and content, as its reader sees it."""

_QUOTES = str.maketrans({"'": "’", '"': "”", "-": "–"})
_ASCII = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
_MARKUP = str.maketrans("", "", "*#`_|")
_MAIL_LINE = 72
_PAGE_LINES = 56


def retyped(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """As mail programs leave it: other quotes and dashes, two spaces after a sentence."""
    other = text.translate(_ASCII)
    other = text.translate(_QUOTES) if other == text else other
    return other.replace(". ", ".  ")


def without_markup(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """Markdown's signs and line breaks are gone, as after a copy through a plain field."""
    return " ".join(text.translate(_MARKUP).split())


def through_html(read: Read) -> Edit:
    """Markdown is shown as a web page, and what the page shows is copied."""

    def edit(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
        return read("page.html", _html(text).encode())

    return edit


def through_mail(read: Read) -> Edit:
    """Sent as a mail whose lines are broken, and answered so many times, each with `> ` before the lines."""

    def edit(text: str, times: float, _: Material, __: np.random.Generator) -> str:
        mail = EmailMessage()
        mail["Subject"] = "Re: text"
        mail.set_content(
            textwrap.indent("\n".join(_lines(text, _MAIL_LINE)), "> " * round(times), lambda _: True)
        )
        return read("mail.eml", mail.as_bytes())

    return edit


def through_pdf(read: Read) -> Edit:
    """Printed into a PDF with lines of so many characters, and copied out of it."""

    def edit(text: str, width: float, _: Material, __: np.random.Generator) -> str:
        lines = _lines(text, round(width))
        return read("print.pdf", _pdf(lines)) if any(lines) else ""

    return edit


def _html(text: str) -> str:
    """The little Markdown that models write: headings, emphasis, code, items of lists."""
    blocks = []
    for block in re.split(r"\n\s*\n", escape(text, quote=False)):
        shown = re.sub(
            r"\*\*(.+?)\*\*|\*(\S.*?)\*|`(.+?)`", lambda found: f"<b>{found[found.lastindex]}</b>", block
        )
        shown = re.sub(r"(?m)^\s*[-*] +(.*)$", r"<li>\1</li>", shown)
        shown = re.sub(r"(?m)^#+ +(.*)$", r"<h2>\1</h2>", shown)
        blocks.append(f"<p>{shown}</p>")
    return f"<!doctype html><html><body>{''.join(blocks)}</body></html>"


def _lines(text: str, width: int) -> list[str]:
    return [line for part in text.split("\n") for line in textwrap.wrap(part, width) or [""]]


def _pdf(lines: list[str]) -> bytes:
    """Pages of lines in Helvetica; a character that the font does not have becomes a question mark."""
    pages = [lines[start : start + _PAGE_LINES] for start in range(0, len(lines), _PAGE_LINES)]
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%b] >>" % (len(pages), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        shown = b"".join(b"(%b) '\n" % re.sub(rb"([()\\])", rb"\\\1", _printable(line)) for line in page)
        stream = b"BT /F 10 Tf 13 TL 50 800 Td\n%bET" % shown
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F 3 0 R >> >> >>" % (5 + 2 * number)
        )
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(out) + end % (len(objects) + 1, table, len(objects) + 1, len(out))


def _printable(line: str) -> bytes:
    return "".join(sign for sign in line if sign.isprintable()).encode("cp1252", "replace")
