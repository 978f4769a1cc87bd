"""`ttmark conformance run` from a key store to a signed report, interrupted and continued."""

import json
from pathlib import Path

import pytest
from typer.testing import Result

from tests.harness.command_line import invoke
from ttmark.evaluation.conformance.plan import CHAT, PLAIN, Size, TextCounts
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.features.conformance import conformance_run
from ttmark.shared.tokenization import TextTokenizer

pytestmark = pytest.mark.long

TINY = TextCounts({CHAT: 9, PLAIN: 9}, 9, 24, (12, 24), 2, 1, 2)
OWN = "The operator's own words, which stay where they are."


@pytest.fixture
def place(signing: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key store, a signing key and the operator's texts."""
    monkeypatch.setenv("TTMARK_KEK", "01" * 32)
    monkeypatch.setenv("TTMARK_THREADS", "1")
    monkeypatch.setenv("TTMARK_DTYPE", "float32")
    monkeypatch.setitem(conformance_run.PLANS, Size.QUICK, TINY)  # type: ignore[arg-type]
    (signing / ".ttmark").mkdir()
    (signing / "own").mkdir()
    (signing / "own" / "a.txt").write_text(OWN)
    done("keys", "create", "assistant", "--tenant", "acme", "--tokenizer", str(model))
    return signing


def done(*arguments: str) -> Result:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def run(model: Path, *more: str, key: str = "assistant", out: str = "out") -> Result:
    options = ("--key", key, "--model", str(model), "--out", out, "--signing-key", "case.pem")
    return invoke("conformance", "run", *options, "--size", "quick", *more)


def test_a_report_is_measured_signed_verified_and_compared(
    place: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(model, key="nobody").output.startswith("ttmark: there is no key nobody")
    asked = conformance_run.detection(TextTokenizer.load(model))
    monkeypatch.setattr(conformance_run, "detection", lambda _: interrupted)
    assert run(model, "--texts", "own").exit_code == 130
    assert not (place / "out" / "report.json").exists()
    texts = {path: path.read_bytes() for path in (place / "out" / "work" / "texts").glob("*.jsonl")}
    assert [len(content.splitlines()) for content in texts.values()] == [9, 9, 9]
    monkeypatch.setattr(conformance_run, "detection", lambda _: asked)
    assert "another seed" in run(model, "--texts", "own", "--seed", "7").output
    result = run(model, "--texts", "own")
    assert result.exit_code == 0, result.output
    assert all(path.read_bytes() == content for path, content in texts.items()), "made again"
    assert "genuine" in done("conformance", "verify", "out", "--public-key", "public.pem").output
    assert "agree within chance" in done("conformance", "compare", "out", "out").output
    written = (place / "out" / "report.json").read_text()
    report = json.loads(written)["report"]
    assert report["model"]["tokenizer_fingerprint"] == TextTokenizer.load(model).fingerprint
    assert set(report["model"]["files"]) == {path.name for path in model.iterdir()}
    assert [one["texts"] for one in report["sets"]] == [2, 2, 2, 2, 1, 9]
    assert OWN not in written + (place / "out" / "report.html").read_text()
    assert (place / "out" / "work").stat().st_mode & 0o077 == 0


def interrupted(*_: object) -> list[float]:
    raise KeyboardInterrupt


def test_a_key_for_another_tokenizer_is_refused(place: Path, model: Path) -> None:
    done("keys", "create", "other", "--tenant", "acme", "--tokenizer", str(DEMO_MODEL_PATH))
    assert "for another tokenizer" in run(model, key="other").output
