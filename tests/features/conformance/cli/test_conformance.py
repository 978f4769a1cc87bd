"""`ttmark conformance`: a report is refused when a byte of it was changed, and two reports are compared."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.harness.imports import ROOT
from tests.harness.simulated_conformance import PLAN, SECRET, simulated_key
from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.measure import (
    ALL,
    DEPLOYED_SECTION,
    EDIT,
    FRESH_SECTION,
    KIND,
    LANGUAGE,
    LENGTH,
    SAMPLING,
    MeasuredRun,
)
from ttmark.evaluation.conformance.plan import FALSE_RATES, FOUND_RATES, Size
from ttmark.evaluation.conformance.report import Deployment, make_report, write_report
from ttmark.evaluation.quality.equivalence import Difference, Margin, judged
from ttmark.evaluation.unmarked_texts import TextSet
from ttmark.services.cli.main import app
from ttmark.shared.signed_files.signed_file import (
    JSON_NAME,
    PAGE_NAME,
    CaseKey,
    FileRefused,
    case_file,
    verified_report,
)

KEY = CaseKey.generate()
OWN_TEXT = "a sentence of the operator's that no report may hold"
HOSTILE = "</script><img src=x onerror=alert(1)>"


QUALITY = tuple(judged([Difference(Margin("length", "tokens"), 90, 45, 100.0, 0.5, 1.0)], 90))


def figures(found: int = 8) -> tuple[Figure, ...]:
    false = [
        Figure(section, name, rate, 100, 1)
        for section in (FRESH_SECTION, DEPLOYED_SECTION)
        for name in (ALL, "people")
        for rate in FALSE_RATES
    ]
    sections = (SAMPLING, LENGTH, KIND, LANGUAGE, EDIT)
    return (
        *false,
        *(Figure(section, "one", rate, 40, found) for section in sections for rate in FOUND_RATES),
    )


def report(found: int = 8, **changes: Any) -> dict[str, Any]:
    key = simulated_key()
    sets = (TextSet("people", HOSTILE, (OWN_TEXT,)),)
    made = make_report(
        Deployment(key, "tiny", {"model.safetensors": "00" * 32}, "ab" * 32, {"engine": "embedded"}),
        MeasuredRun(figures(found), sets, {"en": (3, 4)}, 12_345, QUALITY),
        size=Size.SMALL,
        plan=PLAN,
        seed=1,
        command=f"ttmark conformance run --key '{HOSTILE}'",
        seconds=61.5,
        signing_key=KEY.public.name,
    )
    return made | changes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_report(tmp_path, report(), KEY)
    (tmp_path / "public.pem").write_text(KEY.public.pem())
    (tmp_path / "secret.pem").write_text(KEY.pem())
    return tmp_path


def invoke(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["conformance", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def verify(*files: str | Path, key: Path) -> tuple[int, str]:
    return invoke("verify", *files, "--public-key", key)


def refused(content: bytes, key: CaseKey = KEY) -> bool:
    try:
        verified_report([content], key.public)
    except FileRefused:
        return True
    return False


@pytest.mark.parametrize("name", [JSON_NAME, PAGE_NAME])
def test_a_file_that_was_changed_or_that_another_key_signed_is_refused(folder: Path, name: str) -> None:
    """Of every byte the tests of cases try it: files of both kinds are signed alike."""
    content = (folder / name).read_bytes()
    made_at = json.loads((folder / JSON_NAME).read_bytes())["report"]["made_at"]
    assert verified_report([content], KEY.public) == report(made_at=made_at)
    assert refused(content.replace(b"12345", b"12346"))
    assert refused(content, CaseKey.generate())


def test_verify_says_whose_report_it_is_and_refuses_with_exit_code_1(folder: Path) -> None:
    key = folder / "public.pem"
    code, output = verify(folder, key=key)
    assert (code, output.startswith("genuine: signed with the key")) == (0, True), output
    for files in ([folder / JSON_NAME], [folder / PAGE_NAME], [folder / PAGE_NAME, folder / JSON_NAME]):
        assert verify(*files, key=key)[0] == 0
    shown = json.loads(invoke("verify", folder, "--public-key", key, "--json")[1])
    assert shown["report"]["figures"][0]["section"] == FRESH_SECTION
    page = folder / PAGE_NAME
    page.write_bytes(page.read_bytes().replace(b"Limits", b"limits"))
    assert verify(folder / JSON_NAME, key=key)[0] == 0
    code, output = verify(folder, key=key)
    assert (code, output.startswith("ttmark: refused: it was not signed with the key")) == (1, True), output
    page.unlink()
    assert verify(folder, key=key) == (1, f"ttmark: cannot read {page}: No such file or directory\n")
    assert invoke("verify")[0] == 2


def test_a_page_beside_the_json_of_another_run_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_report(other, report(found=40), KEY)
    (folder / PAGE_NAME).write_bytes((other / PAGE_NAME).read_bytes())
    expected = "ttmark: refused: the files are of different reports, each as it was signed\n"
    assert verify(folder, key=folder / "public.pem") == (1, expected)


def test_a_case_is_no_report_though_the_same_key_signed_it(folder: Path) -> None:
    for name, document in (("case", report(format="ttmark-case/1")), ("report", report())):
        signed = case_file(document, KEY).replace('"case"', f'"{name}"', 1)
        assert refused(signed.encode())


class Page(HTMLParser):
    """Collects what a page would load or run, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [
            f"{name}={value}" for name, value in attrs if name in ("src", "href") or name[:2] == "on"
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_self_contained_and_says_every_figure(folder: Path) -> None:
    content, page = (folder / PAGE_NAME).read_text(), Page()
    page.feed(content)
    assert (page.loads, page.tags.count("script"), "img" in page.tags) == ([], 1, False)
    assert "url(" not in content
    assert "@import" not in content
    assert page.text.count("20.0\u00a0% [9.1, 35.6]") >= 10  # 8 of 40, five sections at two rates
    assert page.text.count("1.0\u00a0% [0.025, 5.4]") >= 8
    assert HOSTILE in page.text.partition('"report"')[0]


def test_a_report_holds_neither_secret_nor_text(folder: Path) -> None:
    key = simulated_key()
    hidden = [OWN_TEXT, SECRET.hex(), KEY.pem().splitlines()[1]]
    assert key.primary is not None
    hidden += [prf_key.hex() for prf_key in key.primary.prf_keys]
    for name in (JSON_NAME, PAGE_NAME):
        content = (folder / name).read_text()
        assert [one for one in hidden if one in content] == []


def test_two_reports_are_compared(folder: Path, tmp_path: Path) -> None:
    alike, unlike = tmp_path / "alike", tmp_path / "unlike"
    for other, found in ((alike, 9), (unlike, 40)):
        other.mkdir()
        write_report(other, report(found=found, size="full"), KEY)
    code, output = invoke("compare", folder, alike / JSON_NAME)
    assert (code, output.splitlines()[-1]) == (0, "the runs agree within chance")
    assert "the runs are of another size" in output
    code, output = invoke("compare", folder, unlike)
    assert (code, output.count("beyond chance: ")) == (1, 10), output
    assert json.loads(invoke("compare", folder, unlike, "--json")[1])["figures"] == len(figures())
    assert invoke("compare", folder, folder / PAGE_NAME)[0] == 1
    assert invoke("compare", folder, folder / "none.json")[0] == 1
    hostile = tmp_path / "hostile.json"
    for content in (
        "[]",
        "{}",
        '{"report": []}',
        '{"report": {"figures": [1]}}',
        '{"report": {"figures": [], "key": 1}}',
    ):
        hostile.write_text(content)
        assert invoke("compare", folder, hostile) == (1, f"ttmark: {hostile} is not a report in json\n")


def test_a_run_does_not_begin_what_it_cannot_finish(folder: Path, tmp_path: Path) -> None:
    options = ("run", "--key", "a", "--model", "demo", "--out")
    assert "is not overwritten" in invoke(*options, folder)[1]
    out = tmp_path / "new"
    assert "a report is signed" in invoke(*options, out)[1]
    assert "not a private key" in invoke(*options, out, "--signing-key", folder / "public.pem")[1]
    signed = (*options, out, "--signing-key", folder / "secret.pem", "--texts")
    (tmp_path / "texts.jsonl").write_text('{"no": "text"}\n')
    assert "not an object with the field `text`" in invoke(*signed, tmp_path / "texts.jsonl")[1]
    assert "No such file" in invoke(*signed, tmp_path / "none.txt")[1]
    assert not out.exists()


def test_the_report_that_is_kept_is_as_it_was_signed_and_agrees_with_the_other_run() -> None:
    kept = ROOT / "docs" / "results" / "conformance"
    for files in ([kept], [kept / "independent.json"]):
        assert verify(*files, key=kept / "public.pem")[0] == 0
    assert invoke("compare", kept, kept / "independent.json")[0] == 0
    code, output = verify(kept.parent / "attacks.json", key=kept.parent / "attacks.pem")
    assert (code, "attacks on the mark of SmolLM2-135M" in output) == (0, True)
