"""Screenshots and scans are read by a machine, within limits, and the answer says so."""

import struct
import sys
import zlib
from collections.abc import Callable

import pytest
from PIL import Image

from tests.features.files.detect.test_extraction import extracted
from tests.harness.drawn_pictures import TEXT, needs_tesseract, page, saved
from tests.harness.hostile_files.pdf import text_page
from ttmark.detect_service.features.files.commands.input_files import read_texts
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.detect_service.features.files.pdf import picture_text
from ttmark.detect_service.features.files.text.extraction import (
    ExtractionLimits,
    LimitExceeded,
    UnreadableFile,
)
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers


def scan() -> bytes:
    return saved(page(scale=2), "PDF", resolution=150)


@needs_tesseract
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("screen.png", lambda: saved(page(), "PNG")),
        ("dark.webp", lambda: saved(page(dark=True), "WEBP", lossless=True)),
        ("sharp.JPG", lambda: saved(page(scale=2).convert("RGB"), "JPEG", quality=85)),
        ("on-its-side.tif", lambda: saved(page(scale=2).rotate(90, expand=True), "TIFF")),
        ("askew.jpeg", lambda: saved(page(scale=2).rotate(2, expand=True, fillcolor=255), "JPEG")),
        ("scan.pdf", scan),
    ],
)
def test_a_picture_is_read_as_a_model_wrote_it(name: str, make: Callable[[], bytes]) -> None:
    found = extract_text(name, make())
    assert (found.text, found.recognised, found.unread) == (TEXT, True, None)


@needs_tesseract
def test_pages_beyond_the_limit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    small = page().crop((0, 0, 760, 130))
    found = extract_text("a.tiff", saved(small, "TIFF", save_all=True, append_images=[small] * 10))
    assert found.text.count("The ferry was late") == 10
    assert found.unread == "Only the first 10 pictures were read."


@needs_tesseract
async def test_the_answer_says_that_a_machine_read_it_in_a_confined_process(service) -> None:
    async with ExtractionWorkers(ExtractionLimits(workers=1)) as workers:
        for name, content in (("a.png", saved(page(), "PNG")), ("a.pdf", scan())):
            found = await workers.extract(name, content)
            assert (found.text, found.recognised) == (TEXT, True)
        assert not (await workers.extract("b.pdf", text_page(b"printed"))).recognised
    answer = (await extracted(service, "a.png", saved(page(), "PNG"))).json()
    assert answer == {"text": TEXT, "recognised": True}
    assert "recognised" not in (await extracted(service, "a.txt", b"typed")).json()


@needs_tesseract
def test_the_command_says_so_too(tmp_path, capsys) -> None:
    (tmp_path / "a.png").write_bytes(saved(page(), "PNG"))
    assert read_texts([str(tmp_path / "a.png")]) == [TEXT]
    assert capsys.readouterr().err.endswith("a.png: a machine read pictures (OCR), letters may be wrong\n")


def png_header(width: int, height: int) -> bytes:
    """No more of a picture than its size: to decode it would fail."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + bytes(9)
    )


@needs_tesseract
async def test_a_bomb_is_refused_by_its_header(service) -> None:
    response = await extracted(service, "a.png", png_header(60_000, 60_000))
    assert (response.status_code, response.json()["param"]) == (413, "file")
    assert "more pixels than the limit of 36 million" in response.json()["detail"]
    bomb = saved(Image.new("1", (7_000, 7_000)), "TIFF", compression="group4")
    with pytest.raises(LimitExceeded, match="more pixels"):
        extract_text("a.tiff", bomb)


@needs_tesseract
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (png_header(100, 100), "not a picture"),
        (b"\x89PNG", "png, jpeg, webp or tiff"),
        (saved(page(), "GIF"), "png, jpeg, webp or tiff"),
        (saved(Image.new("L", (300, 200), 255), "PNG"), "No text was recognised"),
        (saved(Image.new("L", (1, 1)), "PNG"), "picture"),
    ],
)
def test_what_is_no_picture_of_a_text_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        extract_text("a.png", content)


@pytest.mark.parametrize(
    ("name", "content", "package"),
    [
        ("a.png", png_header(9, 9), "apt-get install tesseract-ocr"),
        ("a.pdf", scan(), "apt-get install tesseract-ocr"),
        ("a.pdf", scan(), "pip install pypdfium2"),
    ],
    ids=["picture", "scan", "scan, undrawn"],
)
def test_the_refusal_names_the_package_that_is_not_there(monkeypatch, name, content, package) -> None:
    picture_text._loaded.cache_clear()
    monkeypatch.setattr(picture_text, "LIBRARY", "libnone.so")
    if "pypdfium2" in package:
        monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(UnreadableFile, match=package) as caught:
        extract_text(name, content)
    assert caught.value.reason == "not_installed"
