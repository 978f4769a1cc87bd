"""What the readers take out of files, from bytes to characters, and what is beyond their limits."""

import codecs
import io
import zlib
from contextlib import suppress

import docx
import pytest
from pypdf import PdfReader, PdfWriter

from tests.harness.hostile_files import HOSTILE_FILES
from tests.harness.hostile_files.docx import cell, package, table
from tests.harness.hostile_files.pdf import document, page, stream, text_page
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.detect_service.features.files.text.encodings import decode
from ttmark.detect_service.features.files.text.extraction import LimitExceeded, UnreadableFile


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
    assert extract_text("a.docx", content).text == "outer\n\ntext\ttext"


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
    monkeypatch.setattr("ttmark.detect_service.features.files.office.docx_text.MOST_CELLS", 19)
    with pytest.raises(LimitExceeded, match="more cells than the limit of 19"):
        extract_text("a.docx", package(table(4, cell() * 5)))
    with pytest.raises(LimitExceeded, match="10 MB"):
        extract_text("a.html", b"<p>" + b"x" * 11_000_000)
    with pytest.raises(LimitExceeded, match="more pages than the limit of 5000"):
        extract_text("a.pdf", page(stream(b"BT ET"), pages=5_001))


def test_the_text_of_a_pdf_is_read_page_by_page() -> None:
    assert extract_text("a.pdf", text_page(b"One line.")).text == "One line."
    shown = page(stream(b"BT /F 12 Tf (text) Tj ET"), pages=3)
    assert extract_text("a.PDF", shown).text == "text\n\ntext\n\ntext"


@pytest.mark.parametrize("ending", ["txt", "md", "html", "docx", "pdf"])
@pytest.mark.parametrize("content", [b"", b" \r\n"])
def test_an_empty_file_is_an_empty_text_whatever_its_ending(ending: str, content: bytes) -> None:
    assert extract_text(f"a.{ending}", content).text.strip() == ""


def test_a_page_whose_stream_is_damaged_is_read_up_to_there() -> None:
    packer = zlib.compressobj()
    data = packer.compress(b"BT /F 12 Tf (before) Tj ET ") + packer.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 9
    content = page(stream(data, b"/Filter /FlateDecode "))
    assert extract_text("a.pdf", content).text == "before"


def test_a_pdf_without_text_is_told_apart_from_a_damaged_one() -> None:
    with pytest.raises(UnreadableFile, match="holds no text") as caught:
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


GERMAN = (
    "Das Mädchen geht über die Straße und kauft schöne Äpfel für ihre Großmutter. Es wäre besser, zu gehen."
)
FRENCH = (
    "L'été dernier, nous étions à la plage où les enfants jouaient. C’était très agréable, même après "
    "la pluie, et les pêcheurs vendaient leurs poissons près du château."
)
RUSSIAN = "Сегодня утром я пошёл в магазин и купил хлеб и молоко. Погода была хорошая, и мы гуляли в парке."
GREEK = "Σήμερα το πρωί πήγα στο κατάστημα και αγόρασα ψωμί και γάλα. Ο καιρός ήταν καλός και περπατήσαμε."
POLISH = "Zażółć gęślą jaźń. Dziś rano poszedłem do sklepu i kupiłem świeży chleb, mleko oraz masło."
CZECH = (
    "Dnes ráno jsem šel do obchodu a koupil chléb a mléko. Počasí bylo hezké a procházeli jsme se v parku."
)
TURKISH = (
    "Bugün sabah markete gittim ve ekmek, süt aldım. Hava çok güzeldi, parkta yürüyüş yaptık, şarkı söyledik."
)
HUNGARIAN = "Ma reggel elmentem a boltba, és kenyeret meg tejet vettem. Az idő jó volt, később pedig főztünk."
JAPANESE = "今日は天気がとても良いので、公園へ散歩に行きました。友達と一緒に昼ご飯を食べました。"
CHINESE = "今天天气很好，我们一起去公园散步，然后吃了午饭。这是一个美好的下午。"
ENGLISH = "The naïve plan was written in a long text, which cost £5 and was signed by Zoë in the café."


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (GERMAN, "cp1252", "windows-1252"),
        (FRENCH, "cp1252", "windows-1252"),
        (ENGLISH, "cp1252", "windows-1252"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8_r", "koi8_r"),
        (POLISH, "cp1250", "windows-1250"),
        (JAPANESE, "cp932", "cp932"),
        (CHINESE, "gb18030", "gb18030"),
        (GERMAN, "utf-16-le", "utf-16-le"),
        (GERMAN, "utf-16-be", "utf-16-be"),
        (GERMAN, "utf-8", "utf-8"),
    ],
)
def test_an_encoding_is_read_from_the_bytes_and_named(text: str, encoding: str, name: str) -> None:
    assert decode((3 * text).encode(encoding)) == (3 * text, name, None)


@pytest.mark.parametrize(
    "text",
    [GERMAN, FRENCH, ENGLISH, RUSSIAN, GREEK, POLISH, CZECH, TURKISH, HUNGARIAN, JAPANESE, CHINESE],
    ids=["de", "fr", "en", "ru", "el", "pl", "cs", "tr", "hu", "ja", "zh"],
)
@pytest.mark.parametrize("length", [20, 60, 1000])
def test_a_text_is_refused_rather_than_read_as_other_characters(text: str, length: int) -> None:
    written = (text * 10)[:length]
    for encoding in ("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "iso8859_2", "cp932", "gb18030"):
        with suppress(UnicodeEncodeError, UnreadableFile):
            assert decode(written.encode(encoding))[0] == written, encoding


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_is_no_part_of_the_text(mark: bytes, encoding: str) -> None:
    assert decode(mark + "é€".encode(encoding)) == ("é€", encoding, None)
    with pytest.raises(UnreadableFile, match=f"looks like {encoding}"):
        decode(mark + b"\xff\xd8\xff")


@pytest.mark.parametrize("declared", ["iso-8859-1", "latin1", "ascii", "windows-1252", "WINDOWS-1252"])
def test_a_page_says_its_encoding_and_latin_1_is_read_as_browsers_do(declared: str) -> None:
    page = f'<html><head><meta charset="{declared}"></head><p>caf\u00e9 \u2014 \u20ac'.encode("cp1252")
    found = extract_text("a.html", page)
    assert (found.text, found.encoding) == ("caf\u00e9 \u2014 \u20ac", "windows-1252")


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>", "koi8-r"),
        ("<?xml version='1.0' encoding='windows-1251'?>", "cp1251"),
        ("<meta charset=iso-2022-jp>", "iso2022_jp"),
        ("<meta charset=utf-8>", "utf-8"),
        ("", "utf-8"),
        # What can be read as ASCII is not in UTF-16, and UTF-7 hides tags from whoever does not know.
        ("<meta charset=utf-16>", "utf-8"),
        ("<meta charset=utf-7>", "utf-8"),
        ("<meta charset=no-such-thing>", "utf-8"),
    ],
)
def test_declarations_of_pages_are_honoured_where_pages_can_have_them(head: str, encoding: str) -> None:
    text = "日本" if encoding == "iso2022_jp" else "Погода +ADw-"
    assert extract_text("a.html", f"{head}<p>{text}".encode(encoding)).text == text


def test_a_declaration_that_is_not_true_is_a_problem() -> None:
    with pytest.raises(UnreadableFile, match="looks like euc_jp but is not"):
        extract_text("a.html", b"<meta charset=euc-jp><p>caf\xe9 au lait")


@pytest.mark.parametrize("content", [b"caf\xe9", b"\xe9\n" * 500, b"\xff\x00\xff", bytes(range(256)) * 4])
def test_bytes_that_tell_nothing_are_a_problem(content: bytes) -> None:
    with pytest.raises(UnreadableFile, match="UTF-8") as caught:
        decode(content)
    assert caught.value.reason == "encoding"
