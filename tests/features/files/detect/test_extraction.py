"""`POST /v1/extract`: text out of files, and a clear answer to files that give none."""

import io
import json
from contextlib import suppress
from typing import Any
from unittest.mock import AsyncMock

import docx
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.hostile_files import HOSTILE_FILES
from tests.harness.hostile_files.documents import epub, odt
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.detect_service.features.files.routes import written
from ttmark.detect_service.features.files.text.extraction import (
    FORMAT_OF_ENDING,
    FORMATS,
    Extraction,
    UnreadableFile,
    format_of,
)
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionBusy
from ttmark.detect_service.features.files.workers.worker_process import part_slices
from ttmark.shared.schemas.detection.extraction import ENDINGS, ExtractedPart, ExtractionResponse


def word_document() -> bytes:
    document = docx.Document()
    document.add_heading("Title", 1)
    document.add_paragraph("First paragraph.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.add_paragraph("Last.")
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


PAGE = b"""<!doctype html><head><title>no</title><style>p{}</style></head><body><h1>A <b>bold</b> title</h1>
<!-- no --><p>One   line<br>and another</p><script>no()</script><ul><li>a<li>b</ul>
<table><tr><td>1<td>2</table>caf&eacute;</body>"""


ODT = (
    '<text:h>Title</text:h><text:p>One<text:s text:c="2"/>two<text:tab/>three</text:p><table:table>'
    "<table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell>"
    "<table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table>"
    "<text:p>Last.</text:p>"
)
RTF = rb"{\rtf1\ansi\ansicpg1252{\fonttbl\f0 Times;}\f0 caf\'e9 \b bold\b0\par next \u8364? end}"
MAIL = b"From: a@b.c\r\nSubject: no\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\ncaf\xe9\r\n"


async def extracted(service: Any, name: str, content: bytes, token: str = "full") -> httpx.Response:
    answer: httpx.Response = await service.send("/v1/extract", name, content, token)
    return answer


async def test_the_text_of_a_file_is_given(service) -> None:
    for name, content, text in (
        ("a.txt", "caf\u00e9\r\n".encode(), "caf\u00e9\r\n"),
        ("a.md", b"\xef\xbb\xbf# Title\n", "# Title\n"),
        ("a.txt", "caf\u00e9".encode("utf-16"), "caf\u00e9"),
        ("A.DOCX", word_document(), "# Title\n\nFirst paragraph.\n\nleft\tright\n\nLast."),
        ("a.html", PAGE, "# A bold title\n\nOne line\nand another\n\n- a\n- b\n\n1\t2\n\ncaf\u00e9"),
        ("a.docx", b"", ""),
        ("a.odt", odt(ODT), "# Title\n\nOne  two\tthree\na\nb\nc\nLast."),
        ("a.epub", epub({"b": "<p>Second", "a": "<title>no</title><h1>First"}, "aba"), "# First\n\nSecond"),
        ("a.rtf", RTF, "caf\u00e9 **bold**\nnext \u20ac end"),
        ("a.eml", MAIL, "caf\u00e9\n"),
        ("a.eml", b"Content-Type: text/plain; charset=a\0b\n\nHi", "Hi"),
    ):
        response = await extracted(service, name, content, "verdict")
        assert response.status_code == 200, (name, response.text)
        assert response.json()["text"] == text
        assert response.json().get("title") == {MAIL: "no · a@b.c"}.get(content)


MAILBOX = (
    b"From a@b.c Mon\r\n" + MAIL + b"\r\nFrom d@e.f Tue\r\nSubject: =?utf-8?q?caf=C3=A9?=\r\n\r\n"
    b"One\r\n>From now on\r\nFrom the middle\r\n\r\nFrom x Wed\r\nContent-Type: image/png\r\n\r\nx\r\n"
)


async def test_each_mail_of_a_mailbox_and_each_row_of_a_table_is_a_text_of_its_own(service) -> None:
    no_text = "The mail has no text in its body."
    for name, content, parts in (
        (
            "a.mbox",
            MAILBOX,
            [
                ("1: no · a@b.c", "caf\u00e9\n\n", None),
                ("2: caf\u00e9", "One\nFrom now on\nFrom the middle\n\n", None),
                ("3", "", no_text),
            ],
        ),
        (
            "a.csv",
            b'id,Text,n\nx,"a, ""b""\nc",1\n,d,2\nshort\n',
            [("x", 'a, "b"\nc', None), ("2", "d", None)],
        ),
        ("a.CSV", "text;id\r\ncaf\u00e9,;7\r\n".encode("utf-16"), [("7", "caf\u00e9,", None)]),
    ):
        answer = (await extracted(service, name, content, "verdict")).json()
        assert answer["text"] == ""
        assert [(part["name"], part["text"], part.get("problem")) for part in answer["parts"]] == parts


async def test_a_file_that_cannot_be_read_is_a_problem(service) -> None:
    for name, content, reason in (
        (
            "a.odp",
            b"PK\x03\x04",
            "txt, md, html, docx, odt, rtf, pdf, epub, eml, mbox, csv, png, jpeg, webp or tiff",
        ),
        ("a.pdf", b"%PDF", "not a PDF"),
        ("a.docx", b"not a zip", "not a Word document"),
        ("a.html", b"<!-- -->", "not a web page"),
        ("a.odt", b"PK", "not an OpenDocument text"),
        ("a.odt", odt("", manifest="<manifest:encryption-data/>"), "password"),
        ("a.odt", odt("&locked;"), "not an OpenDocument text"),
        ("a.odt", odt(ODT)[9:], "not an OpenDocument text"),  # its parts lie before its beginning
        ("a.epub", odt(""), "not a book"),
        ("a.rtf", rb"{\rtf1 \u" + b"9" * 30 + b"}", "not a document in Rich Text Format"),
        ("a.rtf", b"rtf", "not a document in Rich Text Format"),
        ("a.eml", b"no mail", "not a mail"),
        ("a.eml", b"Content-Type: image/png\n\nx", "no text in its body"),
        ("a.mbox", b"Subject: a\n\nno mailbox", "not a mailbox"),
        ("a.csv", b"body,id\nx,1\n", "no column that its first line calls text"),
        ("a.csv", b"text\n", "no row with a text"),
        ("a.csv", b'text\n"open', "not a table"),
        ("a.txt", b"\xff\x00\xff", "UTF-8"),
    ):
        response = await extracted(service, name, content)
        assert response.status_code == 422, name
        assert reason in response.json()["detail"]


@given(st.sampled_from(["a.txt", "a.html", "a.docx", "a.pdf"]), st.binary(max_size=200))
def test_no_content_breaks_a_reader(name: str, content: bytes) -> None:
    with suppress(UnreadableFile):
        extract_text(name, content).text.encode()


async def test_a_file_beyond_a_limit_is_too_large(service) -> None:
    for name, content, said in (
        ("a.docx", HOSTILE_FILES["bomb.docx"](2**20), "too large when unpacked: the limit is 64 MiB"),
        ("a.csv", b"text\n" + b"a\n" * 10_001, "`ttmark jobs submit` takes larger ones, and `ttmark detect"),
        ("a.mbox", b"From a@b.c Mon\n\na\n\n" * 10_001, "more than 10,000 texts"),
    ):
        response = await extracted(service, name, content)
        assert (response.status_code, response.json()["param"]) == (413, "file")
        assert said in response.json()["detail"]


SLICE_BYTES = 2**20
TEXTS = {
    "many short": [ExtractedPart(name=str(number), text="a\U0001f600") for number in range(10_000)],
    "a few long": [ExtractedPart(name="1", text='"' * 300_000)] * 3,
    "one": [ExtractedPart(name="1", text="a", problem="none")],
}


@pytest.mark.parametrize("name", TEXTS)
async def test_several_texts_are_read_and_written_in_slices(name: str) -> None:
    parts = tuple(TEXTS[name])
    for data in part_slices(parts):
        size, _, content = data.partition(b"\n")
        assert int(size) == len(content) <= SLICE_BYTES
        assert content.count(b'"name"') <= 256
    pieces = [piece async for piece in written(Extraction("", "utf-8", parts))]
    assert max(map(len, pieces)) <= SLICE_BYTES or name == "a few long"
    whole = ExtractionResponse(text="", encoding="utf-8", parts=list(parts))
    assert b"".join(pieces) == whole.model_dump_json(exclude_none=True).encode()


async def test_a_long_text_is_written_in_slices() -> None:
    text = '\x00"\\\n\U0001f600' * 100_000
    pieces = [piece async for piece in written(Extraction(text, title="a"))]
    assert max(map(len, pieces)) <= 2 * SLICE_BYTES
    assert json.loads(b"".join(pieces)) == {"text": text, "title": "a"}


async def test_the_encoding_of_a_text_is_told(service) -> None:
    text = "Das M\u00e4dchen geht \u00fcber die Stra\u00dfe und kauft sch\u00f6ne \u00c4pfel. " * 5
    response = await extracted(service, "a.txt", text.encode("cp1252"))
    assert response.json() == {"text": text, "encoding": "windows-1252"}
    assert (await extracted(service, "a.docx", word_document())).json().keys() == {"text"}


async def test_what_of_a_file_could_not_be_read_is_told(service) -> None:
    content = "Καλημέρα κόσμε. ".encode() * 30 + b"\xff"
    for name, told in (("a.txt", content), ("a.csv", b"text\n" + content)):
        answer = (await extracted(service, name, told)).json()
        assert answer["unread"] == "The file looks like utf-8, and 1 of its characters are none of it."


async def test_a_full_queue_is_told_with_when_to_come_again(service, monkeypatch) -> None:
    monkeypatch.setattr(
        "ttmark.detect_service.features.files.workers.worker_pool.ExtractionWorkers.extract",
        AsyncMock(side_effect=ExtractionBusy(5)),
    )
    response = await extracted(service, "a.txt", b"")
    assert (response.status_code, response.headers["retry-after"]) == (429, "5")
    assert response.headers["content-type"] == "application/problem+json"


async def test_files_are_counted_by_what_became_of_them(service) -> None:
    for name in ("a.txt", "a.docx", "a.eml", "a.odp"):
        await extracted(service, name, b"PK\x03\x04" if name == "a.odp" else b"text")
    metrics = (await service.client.get("/metrics")).text
    assert 'ttmark_extract_seconds_count{format="text",outcome="read"} 1.0' in metrics
    assert 'ttmark_extract_seconds_count{format="docx",outcome="refused"} 1.0' in metrics
    assert 'ttmark_extract_seconds_count{format="other",outcome="refused"} 1.0' in metrics
    assert 'ttmark_extract_refusals_total{reason="damaged"} 2.0' in metrics
    assert 'ttmark_extract_refusals_total{reason="format"} 1.0' in metrics


def test_a_name_says_its_format_by_its_ending():
    for name in ("a.txt", "a.b.PDF", "..md", "a/b.Html", "C:\\a.docx", "\n.htm"):
        assert format_of(name) in FORMATS
    assert {f".{ending}" for ending in ENDINGS} == set(FORMAT_OF_ENDING)
