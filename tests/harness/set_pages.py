"""PDF files of pages that are set line by line, and one text as a file of each kind."""

import io
from collections.abc import Iterator, Sequence
from email.message import EmailMessage

import docx
from pdfminer.fontmetrics import FONT_METRICS

from tests.harness.hostile_files.pdf import document, stream

FONTS = {"F": "Times-Roman", "B": "Times-Bold", "I": "Times-Italic", "C": "Courier"}


LEFT, TOP, MEASURE, LEADING = 72.0, 720.0, 250.0, 14.0


Drawn = list[str]


def width(text: str, font: str = "F", size: float = 11.0) -> float:
    return sum(FONT_METRICS[FONTS[font]][1].get(letter, 600) for letter in text) * size / 1000


def put(x: float, y: float, text: str, font: str = "F", size: float = 11.0, spacing: float = 0.0) -> str:
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /{font} {size} Tf {spacing} Tw 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET"


def broken(text: str, measure: float) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and width(f"{line} {word}") > measure:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def para(
    text: str,
    top: float = TOP,
    left: float = LEFT,
    measure: float = MEASURE,
    *,
    justified: bool = False,
    first: float = 0,
) -> Drawn:
    """A paragraph in Times; its first line begins by `first` points further right."""
    lines = list(broken(text, measure - first))
    drawn = []
    for place, line in enumerate(lines):
        room = (measure - width(line)) / max(line.count(" "), 1)
        spacing = room if justified and place < len(lines) - 1 else 0.0
        drawn.append(put(left + first * (place == 0), top - LEADING * place, line, spacing=spacing))
    return drawn


def pdf(
    *pages: Drawn,
    characters: str = "",
    more: Sequence[bytes] = (),
    entries: str = "",
    forms: str = "",
    widths: str = "",
) -> bytes:
    """Pages of what is drawn; `characters`: what the file says that characters of Times are (of `bfchar`)."""
    table = (
        "begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n"
        f"1 beginbfrange <20> <7E> <0020> endbfrange\n{characters} endcmap"
    )
    own = "/ToUnicode 7 0 R " if characters else ""
    fonts = [
        f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} {own if key == 'F' else ''}"
        "/Encoding << /BaseEncoding /WinAnsiEncoding /Differences [1 /fi] >> >>"
        for key, name in FONTS.items()
    ]
    numbers = range(8, 8 + 2 * len(pages), 2)
    parts = [
        part
        for number, drawn in zip(numbers, pages, strict=True)
        for part in (_page(number, entries, forms), stream("\n".join(drawn).encode()))
    ]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    return document(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        *(font.encode() for font in fonts),
        stream(table.encode()),
        *parts,
        *more,
    )


def _page(number: int, entries: str, forms: str) -> bytes:
    medium = "/BaseFont /Roboto-Medium /FontDescriptor << /FontName /Roboto-Medium /Flags 32 >>"
    fonts = f"/F 3 0 R /B 4 0 R /I 5 0 R /C 6 0 R /M << /Type /Font /Subtype /Type1 {medium} >>"
    return (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {number + 1} 0 R {entries} "
        f"/Resources << /Font << {fonts} >> /XObject << {forms} >> >> >>"
    ).encode()


def as_docx(text: str) -> bytes:
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


def as_mail(text: str, **attached: str) -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "Report", "a@b.c"
    mail.set_content(text, cte="8bit")
    for name, content in attached.items():
        mail.add_attachment(content, filename=f"{name}.txt")
    return mail.as_bytes()


FILES = {
    "a.docx": as_docx,
    "a.pdf": lambda text: pdf(para(text, measure=440)),
    "a.eml": as_mail,
    "a.txt": str.encode,
}
