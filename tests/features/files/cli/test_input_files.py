"""`ttmark detect FILE` reads what people have, as the service does."""

import io
from pathlib import Path

import docx
import pytest

from tests.harness.hostile_files.pdf import text_page
from ttmark.detect_service.features.files.commands import input_files
from ttmark.detect_service.features.files.commands.input_files import NotExamined, named_files, read_texts
from ttmark.detect_service.features.files.text.extraction import ExtractionLimits
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers


def test_files_of_all_formats_are_read_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
        "g.txt": german.encode() + b"\xff",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    texts = read_texts([str(tmp_path / name) for name in contents])
    assert texts == ["word", "web", "pages", "plain", "<p>as it is", german, german + "\ufffd"]
    assert capsys.readouterr().err.endswith(
        "g.txt: The file looks like utf-8, and 1 of its characters are none of it.\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.pdf", b"%PDF", "The file is not a PDF that can be read."),
        ("a.txt", b"\xff\x00\xff", "Save it as UTF-8"),
        ("a.bin", b"\xff\x00\xff", "Save it as UTF-8"),
        ("none.txt", None, "No such file or directory"),
        ("", None, "Is a directory"),
    ],
)
def test_a_file_that_gives_no_text_is_named_and_costs_no_other_its_text(tmp_path, name, content, reason):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (tmp_path / "good.txt").write_text("good")
    good, bad = str(tmp_path / "good.txt"), str(tmp_path / name) if name else ""
    first, failed, last = read_texts([good, bad, good])
    assert (first, last) == ("good", "good")
    assert isinstance(failed, NotExamined)
    assert failed.name == (bad or "a file without a name")
    assert reason in failed.reason


def test_the_service_s_limits_hold_and_as_many_processes_as_the_setting_says(tmp_path, monkeypatch):
    limits = []

    class Recorded(ExtractionWorkers):
        def __init__(self, given: ExtractionLimits) -> None:
            limits.append(given)
            super().__init__(given)

    monkeypatch.setattr(input_files, "ExtractionWorkers", Recorded)
    monkeypatch.setitem(ExtractionLimits.__init__.__kwdefaults__, "text_bytes", 3)
    monkeypatch.setenv("TTMARK_EXTRACT_WORKERS", "1")
    (tmp_path / "a.html").write_bytes(b"<p>four")
    (failed,) = read_texts([str(tmp_path / "a.html")])
    assert limits == [ExtractionLimits(workers=1)]
    assert isinstance(failed, NotExamined)
    assert "limit of 3 bytes" in failed.reason


def test_a_folder_stands_for_its_readable_files_in_the_order_of_their_paths(tmp_path: Path) -> None:
    names = ["b.md", "a/z.TXT", "a/b.html", "c.gif", ".hidden.txt", ".git/d.txt", "a/e"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "empty").mkdir()
    empty = str(tmp_path / "empty")
    found, skipped = named_files(["-", str(tmp_path), empty, "e.log"])
    inside = [str(tmp_path / name) for name in ("a/b.html", "a/z.TXT", "b.md")]
    assert found[:4] == ["-", *inside]
    assert isinstance(found[4], NotExamined)
    assert (found[4].name, found[5:]) == (empty, ["e.log"])
    assert skipped == 2  # c.gif and a/e
