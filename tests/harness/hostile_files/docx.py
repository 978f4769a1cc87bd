"""Word documents: merged cells, nesting, archives that unpack to more than they look."""

import io
import zipfile
from collections.abc import Callable

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.'
    'openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_LINKS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
)
_LINK = '<Relationship Id="r{}" Type="{}" Target="{}"/>'
_TEXT = "<w:p><w:r><w:t>text</w:t></w:r></w:p>"
UNPACKED = 60 * 2**20
"""Just below what a reader should accept."""


def package(body: str, *, before: str = "", parts: dict[str, str] | None = None) -> bytes:
    """A document with this inside its `w:body`; `before` goes in front of the root element."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr(
            "_rels/.rels", _LINKS.format(_LINK.format(1, f"{_R}/officeDocument", "word/document.xml"))
        )
        document = f'{before}<w:document xmlns:w="{_W}"><w:body>{body}</w:body></w:document>'
        archive.writestr("word/document.xml", document)
        for name, content in (parts or {}).items():
            archive.writestr(name, content)
    return file.getvalue()


def table(rows: int, cells: str) -> str:
    return f"<w:tbl>{f'<w:tr>{cells}</w:tr>' * rows}</w:tbl>"


def cell(properties: str = "", content: str = _TEXT) -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>"


def _filled(part: str) -> Callable[[int], bytes]:
    return lambda _: package(part * (UNPACKED // len(part)))


def _spans(_: int) -> bytes:
    return package(table(64, cell('<w:gridSpan w:val="60000"/>')))


def _merged_downwards(_: int) -> bytes:
    first, others = cell('<w:vMerge w:val="restart"/>'), cell("<w:vMerge/>")
    rows = f"<w:tr>{first * 60}</w:tr>" + f"<w:tr>{others * 60}</w:tr>" * 3_000
    return package(f"<w:tbl>{rows}</w:tbl>")


def _nested_tables(_: int) -> bytes:
    inner = _TEXT
    for _level in range(60):
        inner = table(1, cell(content=inner))
    return package(inner * 500)


def _entities(_: int) -> bytes:
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    return package(
        "<w:p><w:r><w:t>&e11;</w:t></w:r></w:p>", before=f'<!DOCTYPE d [<!ENTITY e0 "ha">{lines}]>'
    )


def _relationships(_: int) -> bytes:
    links = "".join(_LINK.format(number, f"{_R}/image", f"p{number}.xml") for number in range(3_900))
    parts = {f"word/p{number}.xml": "<x/>" for number in range(3_900)}
    return package(_TEXT, parts={"word/_rels/document.xml.rels": _LINKS.format(links), **parts})


def _members(size: int) -> bytes:
    return package(_TEXT, parts={f"{number:x}": "" for number in range(size // 100)})


def _declares_too_little(_: int) -> bytes:
    content = package(f"<w:p><w:r><w:t>{'x' * 200 * 2**20}</w:t></w:r></w:p>")
    archive = zipfile.ZipFile(io.BytesIO(content))
    true_size = archive.getinfo("word/document.xml").file_size
    return content.replace(true_size.to_bytes(4, "little"), (2**20).to_bytes(4, "little"))


FILES: dict[str, Callable[[int], bytes]] = {
    "spans.docx": _spans,
    "merged-downwards.docx": _merged_downwards,
    "nested-tables.docx": _nested_tables,
    "cells.docx": lambda _: package(table(UNPACKED // 12_000, cell() * 150)),
    "rows.docx": lambda _: package(table(UNPACKED // 30, "<w:tc/>")),
    "deep.docx": lambda _: package("<w:p>" * 100_000 + "</w:p>" * 100_000),
    "paragraphs.docx": _filled("<w:p/>"),
    "runs.docx": lambda _: package("<w:p>" + "<w:r><w:t>a</w:t></w:r>" * (UNPACKED // 25) + "</w:p>"),
    "texts.docx": _filled("<w:p><w:r><w:t>a</w:t></w:r></w:p>"),
    "long-text.docx": lambda _: package(f"<w:p><w:r><w:t>{'x' * UNPACKED}</w:t></w:r></w:p>"),
    "bomb.docx": lambda size: package("<w:p/>" * (100 * size // 6)),
    "entities.docx": _entities,
    "relationships.docx": _relationships,
    "members.docx": _members,
    "declares-too-little.docx": _declares_too_little,
}
