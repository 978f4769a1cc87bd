"""`ttmark conformance attacks`: texts of the demo model, the detection service, a signed report."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import ttmark
from tests.harness.command_line import invoke
from tests.harness.listening import listening
from tests.harness.measured_here import measured_here
from tests.unit.detect_service.served import detection_app
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.evaluation.adversaries.catalogue import Attack, attacks
from ttmark.services.features.conformance import conformance_attacks
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.app import AppOptions
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_files import LibraryKeyFile
from ttmark.shared.schemas.profile import profile_fields

pytestmark = pytest.mark.long

SCOPES = {"ttm_sees": {Scope.DETECT, Scope.DETECT_EVIDENCE}, "ttm_blind": {Scope.DETECT}}
TRIED = ("words replaced by others", "no-break spaces", "printed to PDF and copied")


async def authenticate(token: str) -> Principal:
    return Principal(token, "acme", frozenset(SCOPES[token]))


@pytest.fixture(scope="module")
def service_and_texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Sequence[str]]]:
    """A detection service with the key that three texts of the demo model are marked with."""
    key = ttmark.Key(LibraryKeyFile(secret="07" * 32, profile=profile_fields(pool=1)))
    with measured_here(tmp_path_factory.mktemp("state")), ttmark.load("demo", reproducible=True) as model:
        texts = [model.generate("Once", key=key, max_new_tokens=60, seed=seed) for seed in range(3)]
        tokenizer = model.tokenizer
    ((profile, prf_keys),) = key.variants(tokenizer.fingerprint)
    version = UnlockedVersion(1, KeyState.PRIMARY, *prf_keys)
    held = FixedKeys([UnlockedKey("assistant", "acme", profile, 1, (version,))])
    served = detection_app(
        DetectionBackend(held, TokenizerSet([tokenizer]), 30_000),
        AppOptions(authenticate=authenticate),
        workers=ExtractionWorkers(),
    )
    with listening(served) as port:
        yield f"http://127.0.0.1:{port}", texts


@pytest.fixture
def place(
    signing: Path, service_and_texts: tuple[str, Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with texts and a signing key, from which the service is reached."""
    url, texts = service_and_texts
    monkeypatch.setenv("TTMARK_DETECT_URL", url)
    monkeypatch.setattr(conformance_attacks, "attacks", lambda *tools: filter(_is_tried, attacks(*tools)))
    (signing / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return signing


def run(*more: str, out: str = "out", token: str = "ttm_sees") -> Result:
    common = ("--texts", "texts.jsonl", "--signing-key", "case.pem", "--out", out, "--token", token)
    return invoke("conformance", "attacks", *common, *more)


def test_a_report_is_made_signed_verified_and_goes_on(
    place: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--judge", str(model), "--judge-texts", "2")

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(conformance_attacks, "attacks_report", interrupted)
        assert run(*options).exit_code == 130
    kept = (place / "out" / "work" / "answers.jsonl").read_bytes()
    assert "another seed" in run(*options, "--seed", "7").output
    result = run(*options)
    assert result.exit_code == 0, result.output
    assert (place / "out" / "work" / "answers.jsonl").read_bytes() == kept, "asked again"
    verified = invoke("conformance", "verify", "out", "--public-key", "public.pem")
    assert verified.exit_code == 0, verified.output
    assert "attacks on the mark of these texts, 3 texts" in verified.output
    written = (place / "out" / "report.json").read_text()
    report = json.loads(written)["report"]
    found = {one["name"]: one["found"] for one in report["figures"] if one["rate"] == 1e-2}
    assert found["as written"] == found["no-break spaces, 100% of the words"] == 3
    assert found["texts by people"] == 0
    assert found["words replaced by others, 50% of the words"] < 3
    unedited = report["attacks"][0]["kept"]
    assert unedited["words"]["estimate"] == 1.0
    assert unedited["perplexity"]["estimate"] > 1.0
    assert unedited["similarity"] is None
    assert "assistant" in report["detector"]["keys"]
    assert not any(text[:40] in written for text in _texts(place))
    assert "agree within chance" in invoke("conformance", "compare", "out", "out").output
    page = place / "out" / "report.html"
    page.write_bytes(page.read_bytes().replace(b"fails", b"holds", 1))
    assert invoke("conformance", "verify", "out", "--public-key", "public.pem").exit_code == 1


def test_a_token_without_evidence_is_refused_before_anything_is_asked(place: Path) -> None:
    result = run(token="ttm_blind", out="other")
    assert (result.exit_code, "lacks the scope detect:evidence" in result.output) == (1, True)
    assert not (place / "other").exists()


def _is_tried(attack: Attack) -> bool:
    return attack.name in TRIED


def _texts(place: Path) -> list[str]:
    return [json.loads(line)["text"] for line in (place / "texts.jsonl").read_text().splitlines()]
