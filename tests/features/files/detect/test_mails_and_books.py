"""Mails, mailboxes, books, tables and encodings: every text in them is read, and what is not is told."""

from email.message import EmailMessage

import pytest

from tests.harness.hostile_files.documents import epub
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.detect_service.features.files.text.encodings import decode
from ttmark.detect_service.features.files.text.extraction import UnreadableFile


def part(kind: str, body: str, more: str = "") -> str:
    return f"--B\r\nContent-Type: {kind}\r\n{more}\r\n{body}\r\n"


def parts(kind: str, *inside: str, boundary: str = "B") -> str:
    body = "".join(inside).replace("--B", f"--{boundary}") + f"--{boundary}--\r\n"
    return f'Content-Type: {kind}; boundary="{boundary}"\r\n\r\n{body}'


PICTURE = part("image/png", "aaaa", "Content-Disposition: inline; filename=a.png\r\n")
NOTE = part("text/plain", "note", "Content-Disposition: attachment; filename=a.zip\r\n")
MAILS = {
    "text around a picture": (
        parts("multipart/mixed", part("text/plain", "a"), PICTURE, part("text/plain", "b")),
        "a\n\nb",
    ),
    "pages around a picture": (
        parts("multipart/mixed", part("text/html", "<p>a"), PICTURE, part("text/html", "<p>b"), NOTE),
        "a\n\nb",
    ),
    "an empty first part": (
        parts("multipart/mixed", part("text/plain", ""), PICTURE, part("text/plain", "b")),
        "b",
    ),
    "both ways": (parts("multipart/alternative", part("text/plain", "a"), part("text/html", "<p>b")), "a"),
    "an empty plain way": (
        parts("multipart/alternative", part("text/plain", " "), part("text/html", "<p>b")),
        "b",
    ),
    "ways of several parts": (
        parts(
            "multipart/alternative",
            part("text/plain", " \n"),
            "--B\r\n"
            + parts(
                "multipart/mixed", part("text/html", "<p>a"), PICTURE, part("text/html", "b"), boundary="C"
            ),
        ),
        "a\n\nb",
    ),
    "a page and its pictures": (
        parts("multipart/related", part("text/html", "<p>a"), PICTURE, part("text/html", "<p>no")),
        "a",
    ),
    "a label that means its superset": (
        "Content-Type: text/plain; charset=iso-8859-1\r\n\r\n\x93a\x94",
        "\u201ca\u201d",
    ),
    "another such label": ("Content-Type: text/plain; charset=gb2312\r\n\r\n\xe9F", "\u9555"),
}


@pytest.mark.parametrize(("mail", "text"), MAILS.values(), ids=MAILS)
def test_all_texts_of_a_mail_are_read(mail: str, text: str) -> None:
    content = "From: a@b.c\r\nMIME-Version: 1.0\r\n" + mail
    assert extract_text("a.eml", content.encode("latin-1")).text.strip() == text


def test_files_that_came_with_a_mail_are_read_beside_it() -> None:
    mail, forwarded = EmailMessage(), EmailMessage()
    mail["From"] = "a@b.c"
    mail.set_content("See the essay.")
    forwarded.set_content("As he wrote:")
    for message, name, content in (
        (mail, "a.html", b"<p>Essay"),
        (mail, "b.pdf", b"x"),
        (forwarded, "c.txt", b"Deep"),
    ):
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    mail.add_attachment(PICTURE.encode(), maintype="image", subtype="gif", filename="d.gif")
    mail.add_attachment(forwarded)
    found = extract_text("a.eml", mail.as_bytes()).parts
    texts = {each.name: each.text.strip() or each.problem for each in found}
    whole = {"a@b.c": "See the essay.", "a.html": "Essay", "b.pdf": "The file is not a PDF that can be read."}
    assert texts == whole | {"mail": "As he wrote:", "c.txt": "Deep"}
    assert [each.attachment for each in found] == [None, True, True, True, True]


@pytest.mark.parametrize(
    "between",
    [
        "From a@b.c Mon Jan  1 10:00:00 1990\n",
        "From MAILER-DAEMON Fri Jul 8 12:08 2011\n",
        "\nFrom - x\n",
        "\x01\x01\x01\x01\n\x01\x01\x01\x01\n",
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_mails_of_old_mailboxes_are_told_apart(between: str, line_end: str) -> None:
    mailbox = f"{between.lstrip()}Subject: a\n\nOne\nFrom here\n{between}Subject: b\n\nTwo\n"
    found = extract_text("a.mbox", mailbox.replace("\n", line_end).encode()).parts
    assert [(each.name, each.text.strip()) for each in found] == [("1: a", "One\nFrom here"), ("2: b", "Two")]


def book(*hrefs: str) -> bytes:
    """A book of two pages, one of which ends elements where they begin."""
    kind = 'media-type="application/xhtml+xml"'
    items = "".join(f'<item id="{number}" href="{href}" {kind}/>' for number, href in enumerate(hrefs))
    spine = "".join(f'<itemref idref="{number}"/>' for number in range(len(hrefs)))
    first = "<head><title/><script src='x'/></head><p>One<i/> two<br/>three"
    package = f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
    return epub({"a": first, "\u00ee": "<p>Four"}, "", package=package)


def test_pages_of_a_book_are_found_by_whatever_names_them_and_missing_ones_are_told() -> None:
    found = extract_text("a.epub", book("a.xhtml#part", "i%CC%82.xhtml", "none.xhtml"))
    assert found.text == "One two\nthree\n\nFour"
    assert found.unread == "1 of 3 pages of the book could not be read."
    with pytest.raises(UnreadableFile, match="not a book"):
        extract_text("a.epub", book("none.xhtml"))


@pytest.mark.parametrize("before", ["sep=;\r\n", '"sep=;"\n', ";;\n", "\r\n\n", "sep=;\n\n;\n"])
def test_lines_that_spreadsheets_write_before_a_table_are_no_part_of_it(before: str) -> None:
    found = extract_text("a.csv", f"{before}id;text\n1;a, b\n".encode()).parts
    assert [(each.name, each.text) for each in found] == [("1", "a, b")]


def test_a_few_bytes_that_are_none_of_the_encoding_are_told() -> None:
    text = "Καλημέρα κόσμε. " * 30
    told = "The file looks like utf-8, and 1 of its characters are none of it."
    assert decode(text.encode() + b"\xff") == (text + "\ufffd", "utf-8", told)
    page = f"<meta charset=windows-1253><p>{text}".encode("cp1253") + b"\xd2"
    found = extract_text("a.html", page)
    assert (found.text, found.unread) == (text + "\ufffd", told.replace("utf-8", "windows-1253"))
    assert extract_text("a.txt", text.encode() + b"\xff").unread == told
    page = b"<meta charset=utf-8><title>\xef</title>\n<p>" + b"Plain words. " * 30
    assert (extract_text("a.html", page).unread or "").startswith("The file looks like utf-8, and 1")
    with pytest.raises(UnreadableFile):
        decode(("caf\xe9 " * 30).encode("latin-1"), "utf-8")
