"""A stranger with `docs/spec.md` and an exported key answers as the service does."""

import asyncio
import json
import math

import pytest
from typer.testing import CliRunner

from tests.harness.spec_detector import detect
from tests.unit.detect_service.test_golden_likelihood import weighted
from ttmark.services.cli import keys

MODES = {"direct": ("direct", {}), "aligned": ("aligned", {}), "scan": ("localized", {})}
FPR = 1e-5


@pytest.fixture
async def export(service, tmp_path, monkeypatch):
    """Exports one of the service's keys by the command, and reads the file."""
    monkeypatch.setenv("TTMARK_STORE_URL", f"sqlite:///{tmp_path / 'keys.db'}")
    monkeypatch.setenv("TTMARK_KEK", "00" * 32)
    monkeypatch.setenv("TTMARK_LEDGER_FILE", "none")
    (tmp_path / "audit").mkdir()
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", str(tmp_path / "audit"))

    async def command(key_id):
        arguments = ["export", key_id, str(tmp_path / f"{key_id}.json"), "--i-understand", key_id]
        result = await asyncio.to_thread(CliRunner().invoke, keys.app, arguments)
        assert result.exit_code == 0, result.output
        return json.loads((tmp_path / f"{key_id}.json").read_text())

    return command


async def assert_same_answer(service, text, exports, mode, token):
    route, options = MODES[mode]
    names = [one["key_id"] for one in exports]
    expected = await service.one(route, text, token, keys=names, fpr=FPR, **options)
    answers = []
    for one, weights in weighted(text).items():
        weight, tokens = sum(weights), service.tokenizer.encode(one)
        found = detect(exports, tokens, mode, FPR * weight, any_phase=True)
        answers.append((found.log10_p - math.log10(weight), found))
    log10_p, answer = min(answers, key=lambda one: one[0])
    assert min(0.0, log10_p) == pytest.approx(expected.log10_p, abs=1e-6)
    assert 3 * answer.hypotheses == expected.hypotheses
    if expected.key is not None:
        found = (expected.key.key_id, expected.key.version, expected.key.pool_key or 0)
        assert (answer.key_id, answer.version, answer.pool_key) == found
    return expected


async def test_exported_keys_and_an_exported_pool_find_what_the_service_finds(service, export):
    keys, pool = [await export("a-one"), await export("a-two")], await export("d-pool")
    assert keys[0]["profile"]["tokenizer_fingerprint"] == service.tokenizer.fingerprint
    marked = service.marked("a-two", 120, spaces="double")
    hidden = service.marked("a-one", 120).replace("a", "\N{CYRILLIC SMALL LETTER A}")
    plain = "Nothing is hidden here, and nobody looks for more than that."
    pooled = service.marked("d-pool", 100, number=13)
    for mode in MODES:
        found = await assert_same_answer(service, marked, keys, mode, "full")
        assert (found.verdict, found.key.key_id, found.reading) == ("watermarked", "a-two", "as_sent")
        found = await assert_same_answer(service, hidden, keys, mode, "full")
        assert (found.verdict, found.key.key_id, found.reading) == ("watermarked", "a-one", "unwrapped")
        assert (await assert_same_answer(service, plain, keys, mode, "full")).verdict == "too_short"
        if mode != "aligned":
            found = await assert_same_answer(service, pooled, [pool], mode, "pool")
            assert (found.verdict, found.key.pool_key) == ("watermarked", 13)
