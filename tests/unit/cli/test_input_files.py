"""`ttmark detect FILE` reads what people have, as the service does."""

import io
from pathlib import Path

import docx
import pytest

from tests.harness.hostile_files.pdf import text_page
from ttmark.detect_service.extraction import ExtractionLimits
from ttmark.services.cli.input_files import read_texts
from ttmark.services.runtime import StartupError
from ttmark.services.settings_extraction import ExtractionSettings


def test_files_of_all_formats_are_read_in_order(tmp_path: Path) -> None:
    document, word = docx.Document(), io.BytesIO()
    document.add_paragraph("word")
    document.save(word)
    german = "Das Mädchen geht über die Straße und kauft schöne Äpfel für ihre Großmutter. " * 4
    contents = {
        "a.docx": word.getvalue(),
        "b.html": b"<p>web<script>no</script>",
        "c.pdf": text_page(b"pages"),
        "d.txt": b"\xef\xbb\xbfplain",
        "e.log": b"<p>as it is",
        "f.md": german.encode("cp1252"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    texts = read_texts([str(tmp_path / name) for name in contents])
    assert texts == ["word", "web", "pages", "plain", "<p>as it is", german]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.pdf", b"%PDF", "a.pdf: The file is not a PDF that can be read."),
        ("a.txt", b"\xff\x00\xff", "Save it as UTF-8"),
        ("a.bin", b"\xff\x00\xff", "a.bin: .* Save it as UTF-8"),
        ("none.txt", None, "cannot read .*none.txt: No such file"),
    ],
)
def test_a_file_that_gives_no_text_is_named(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(StartupError, match=reason):
        read_texts([str(tmp_path / name)])


def test_limits_are_settings_and_the_usual_ones_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ExtractionSettings().extraction_limits() == ExtractionLimits()
    monkeypatch.setenv("TTMARK_EXTRACT_TEXT_BYTES", "3")
    (tmp_path / "a.html").write_bytes(b"<p>four")
    with pytest.raises(StartupError, match="limit of 3 bytes"):
        read_texts([str(tmp_path / "a.html")])
