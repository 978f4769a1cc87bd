"""Bytes to characters: marks, declarations, and what bytes tell; never other characters than were written."""

import codecs
from contextlib import suppress

import pytest

from ttmark.detect_service.extraction import UnreadableFile
from ttmark.detect_service.extraction.encodings import decode
from ttmark.detect_service.extraction.readers_by_format import extract_text

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
    assert decode((3 * text).encode(encoding)) == (3 * text, name)


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
    assert decode(mark + "é€".encode(encoding)) == ("é€", encoding)
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
