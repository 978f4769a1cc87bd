"""A small file of each kind, and what no program makes of them: cut, doubled, with other bytes."""

import io
import random
import zipfile
import zlib
from collections.abc import Iterator

from tests.harness.hostile_files import documents, docx, pdf

_CHINESE = (
    b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /GBK-EUC-H /DescendantFonts [<< /Type /Font "
    b"/Subtype /CIDFontType0 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) >> >>] >>"
)
_LINES = b"BT /F 12 Tf 50 700 Td (1. One) Tj 0 -20 Td [(2. T) -30 (wo)] TJ ET"
_MAIL = b"""Subject: =?koi8-r?q?=C1?=
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=iso-2022-jp

\x1b$BF|\x1b(B
--b
Content-Type: text/html

<p>a
--b--
"""
SMALL_FILES = {
    "a.txt": "caf\u00e9".encode("utf-16"),
    "a.html": "<meta charset=big5><h1>\u4e2d</h1><ol><li>a<table><tr><td>\u6587<td>b</table>".encode("big5"),
    "a.docx": docx.package(docx.table(2, docx.cell('<w:gridSpan w:val="2"/>')) + "<w:p/>"),
    "a.odt": documents.odt(
        '<text:list><text:list-item><text:p>a<text:s text:c="2"/>b</text:p></text:list-item></text:list>'
    ),
    "a.rtf": rb"{\rtf1\ansicpg1255{\fonttbl\f0 Times;}\f0 \'e0\b \u1488? \par\bin3 abc}",
    "a.pdf": pdf.page(pdf.stream(zlib.compress(_LINES), b"/Filter /FlateDecode ")),
    "b.pdf": pdf.text_page(b"\xd6\xd0", font=_CHINESE),
    "a.epub": documents.epub({"a": "<p>a", "b": "<p>b"}, ["b", "a"]),
    "a.eml": _MAIL,
    "a.mbox": b"From a\nSubject: b\n\nc\n\nFrom d\n" + _MAIL,
    "a.csv": b'id,text\nx,"a\n""b"\n,c\n',
}
_NUMBERS = (b"-1", b"0", b"65536", b"2147483648", b"9" * 30, b"1e999", b"0.0000001")
_BYTES = b"<>/&;\"'(){}[]\\%=-\r\n\t \0\xff\x80#*0"


def mutations(count: int) -> Iterator[tuple[str, bytes]]:
    """So many files by their names, of each kind as many; of an archive mostly what is packed in it."""
    generator = random.Random(count)
    for number in range(count):
        name = list(SMALL_FILES)[number % len(SMALL_FILES)]
        content = SMALL_FILES[name]
        packed = content.startswith(b"PK") and generator.random() < 0.8
        yield name, (_repacked if packed else _changed)(content, generator)


def _repacked(content: bytes, generator: random.Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = generator.choice(old.namelist())
        for member in old.namelist():
            part = old.read(member)
            new.writestr(member, _changed(part, generator) if member == chosen else part)
    return made.getvalue()


def _changed(content: bytes, generator: random.Random) -> bytes:
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        at = generator.randrange(len(content) + 1)
        to = at + generator.choice((0, 1, 1, 8, 64))
        part = content[at:to]
        others = (
            b"",
            part * generator.choice((2, 300)),
            generator.choice(_NUMBERS),
            bytes([generator.choice(_BYTES)]),
            generator.randbytes(1),
            content[generator.randrange(len(content) + 1) :][:64],
        )
        content = content[:at] + generator.choice(others) + content[to:]
    return content
