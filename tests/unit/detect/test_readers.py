"""What the readers take out of files, and what is beyond their limits."""

import io
import re

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from tests.harness.hostile_files import HOSTILE_FILES
from tests.harness.hostile_files.docx import cell, package, table
from tests.harness.hostile_files.pdf import document, page, stream, text_page
from ttmark.detect_service.extraction import LimitExceeded, UnreadableFile
from ttmark.detect_service.extraction.html_text import tidy
from ttmark.detect_service.extraction.readers_by_format import extract_text


def tidied_slowly(text: str) -> str:
    """What `tidy` says, by regular expressions that are quadratic in runs of blanks."""
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]*\n[ \t]*", "\n", text)).strip()


@given(st.text(alphabet=" \t\nab\xa0\u2028", max_size=60))
def test_blanks_are_tidied_as_the_regular_expressions_did(text: str) -> None:
    assert tidy(text) == tidied_slowly(text)


def test_a_merged_cell_is_read_once() -> None:
    document = docx.Document()
    grid = document.add_table(2, 3)
    for number, each in enumerate(grid._cells):
        each.text = str(number)
    grid.cell(0, 0).merge(grid.cell(0, 1)).text = "wide"
    grid.cell(0, 2).merge(grid.cell(1, 2)).text = "high"
    file = io.BytesIO()
    document.save(file)
    assert extract_text("a.docx", file.getvalue()).text == "wide\thigh\n3\t4\t"
    inner = table(1, cell() * 2)
    content = package(table(1, cell(content="<w:p><w:r><w:t>outer</w:t></w:r></w:p>" + inner)))
    assert extract_text("a.docx", content).text == "outer\ntext\ttext"


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("spans.docx", "cells", "spans more columns than the limit of 1000"),
        ("nested-tables.docx", "nesting", "nested deeper than the limit of 16"),
        ("deep.docx", "nesting", "nested deeper than the limit of 256 levels"),
        ("bomb.docx", "unpacked", "too large when unpacked: the limit is 64 MiB"),
        ("members.docx", "unpacked", "more files than the limit of 4000"),
        ("long-text.docx", "text", "exceeds the limit of 10 MB"),
        ("deep-blocks.html", "nesting", "nested deeper than the limit of 256 levels"),
        ("deep.odt", "nesting", "nested deeper than the limit of 256 levels"),
        ("nested.eml", "nesting", "nested too deep"),
        ("nested-bomb.pdf", "unpacked", "75 MB when unpacked"),
    ],
)
def test_a_file_beyond_a_limit_of_its_reader_is_told_which(name: str, reason: str, words: str) -> None:
    with pytest.raises(LimitExceeded, match=words) as caught:
        extract_text(name, HOSTILE_FILES[name](2**20))
    assert caught.value.reason == reason


def test_too_long_a_page_and_too_many_cells_or_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttmark.detect_service.extraction.office_text.MOST_CELLS", 19)
    with pytest.raises(LimitExceeded, match="more cells than the limit of 19"):
        extract_text("a.docx", package(table(4, cell() * 5)))
    with pytest.raises(LimitExceeded, match="10 MB"):
        extract_text("a.html", b"<p>" + b"x" * 11_000_000)
    with pytest.raises(LimitExceeded, match="more pages than the limit of 5000"):
        extract_text("a.pdf", page(stream(b"BT ET"), pages=5_001))


def test_the_text_of_a_pdf_is_read_page_by_page() -> None:
    assert extract_text("a.pdf", text_page(b"One line.")).text == "One line."
    assert (
        extract_text("a.PDF", page(stream(b"BT /F 12 Tf (text) Tj ET"), pages=3)).text == "text\ntext\ntext"
    )


@pytest.mark.parametrize("ending", ["txt", "md", "html", "docx", "pdf"])
@pytest.mark.parametrize("content", [b"", b" \r\n"])
def test_an_empty_file_is_an_empty_text_whatever_its_ending(ending: str, content: bytes) -> None:
    assert extract_text(f"a.{ending}", content).text.strip() == ""


def test_a_pdf_without_text_is_told_apart_from_a_damaged_one() -> None:
    with pytest.raises(UnreadableFile, match="may be pictures") as caught:
        extract_text("a.pdf", page(stream(b"q Q")))
    assert caught.value.reason == "no_text"
    with pytest.raises(UnreadableFile, match="not a PDF"):
        extract_text("a.pdf", document(b"<< /Type /Catalog >>"))


@pytest.mark.parametrize(("password", "read"), [("", True), ("secret", False)])
def test_a_pdf_with_a_password_is_refused_unless_anyone_may_read_it(password: str, read: bool) -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(text_page(b"One line."))))
    writer.encrypt(password, "owner", algorithm="AES-256")
    file = io.BytesIO()
    writer.write(file)
    if read:
        assert extract_text("a.pdf", file.getvalue()).text == "One line."
    else:
        with pytest.raises(UnreadableFile, match="password") as caught:
            extract_text("a.pdf", file.getvalue())
        assert caught.value.reason == "protected"


def test_a_word_document_with_a_password_is_told_apart_from_a_damaged_one() -> None:
    with pytest.raises(UnreadableFile, match="password") as caught:
        extract_text("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
    assert caught.value.reason == "protected"
