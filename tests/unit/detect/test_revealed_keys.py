"""Versions that were made public: anybody gets the service's verdicts again, and no forgery counts."""

import asyncio
import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import ttmark
from tests.unit.detect.conftest import Service, watermarked_text
from ttmark.services.cli.main import app
from ttmark.shared.keys.key_files import ProvesNothing, RevealedKey
from ttmark.shared.keys.portable_mark import MarkRefused, MarkSecret, PortableMark
from ttmark.shared.keys.replica_reports import ReplicaReporter
from ttmark.shared.vault.store import open_store

FPR = 1e-5
LENGTHS = (30, 45, 60, 70, 80, 90, 100, 120, 150, 200)
PLAIN = [f"Nothing is hidden in letter {n}, and nobody looks for more than that." * n for n in range(1, 11)]


async def command(line: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, shlex.split(line))


async def done(line: str) -> Result:
    result = await command(line)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
async def folder(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of an operator of the service, whose key `old` was made on record."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "STORE_URL": f"sqlite:///{tmp_path / 'keys.db'}",
        "KEK": "00" * 32,
        "LEDGER_FILE": "none",
        "AUDIT_FOLDER": "audit",
    }.items():
        monkeypatch.setenv(f"TTMARK_{name}", value)
    (tmp_path / "audit").mkdir()
    (tmp_path / "model").mkdir()
    service.tokenizer.backend.save("model/tokenizer.json")
    await done("keys create old --tenant a --tokenizer model")
    await service.backend.keys.refresh()  # type: ignore[attr-defined]
    return tmp_path


def content(name: str) -> bytes:
    return Path(name).read_bytes()


def put(name: str, content: bytes) -> None:
    Path(name).write_bytes(content)


def there(name: str) -> bool:
    return Path(name).exists()


async def over() -> None:
    """Another version marks, and the first is no longer looked for."""
    await done("keys rotate old")
    await done("keys promote old 2 --force")
    await done("keys retire old 1 --yes")


def marked_texts(service: Service) -> list[str]:
    key = service.backend.keys.get("old")  # type: ignore[attr-defined]
    return [
        watermarked_text(
            service.tokenizer,
            key.profile.watermark(),
            key.primary.prf_keys[n % 4],
            tokens,
            spaces="single",
            seed=n,
        )
        for n, tokens in enumerate(LENGTHS)
    ]


async def test_twenty_old_verdicts_come_again_from_the_library_alone(service, folder, monkeypatch):
    texts = [*marked_texts(service), *PLAIN]
    inputs = [{"text": text} for text in texts]
    body: dict[str, object] = {"inputs": inputs, "keys": ["old"], "fpr": FPR}
    answers = await service.results("combined", body)
    assert {one.verdict for one in answers} == {"watermarked", "not_detected", "too_short"}
    dated = datetime.now(UTC)
    await over()
    await done("keys reveal old --version 1 --out old.json --i-understand old")
    for name in ("STORE_URL", "KEK", "LEDGER_FILE", "AUDIT_FOLDER"):
        monkeypatch.delenv(f"TTMARK_{name}")
    (folder / "keys.db").unlink()
    key = ttmark.Key.from_revealed("old.json", dated=dated)
    found = await asyncio.to_thread(ttmark.detect, texts, key, fpr=FPR, model="model")
    assert [one.verdict for one in found] == [one.verdict for one in answers]
    assert [one.log10_e for one in found] == pytest.approx([one.log10_e for one in answers], abs=1e-9)


async def test_a_text_that_may_be_forged_or_is_older_than_the_key_is_refused_by_its_date(service, folder):
    text = marked_texts(service)[-1]
    put("text.txt", text.encode())
    made = datetime.now(UTC).isoformat()
    await over()
    await done("keys reveal old --version 1 --out old.json --i-understand old")
    verify = "verify text.txt --revealed old.json --tokenizer model --json"
    answer = json.loads((await done(f"{verify} --dated {made}")).stdout)
    assert (answer["verdict"], answer["scheme"]) == ("watermarked", "ttmark")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for dated, why in (
        ("", "has no date"),
        (f"--dated {tomorrow:%Y-%m-%d}", "not older than the revelation"),
        (f"--dated {datetime.now(UTC):%Y-%m-%d}", "not older than the revelation"),
        ("--dated 2020-01-01", "made later than the text"),
        ("--dated soon", "is no date"),
    ):
        refused = await command(f"{verify} {dated}")
        assert (refused.exit_code, refused.stdout) == (1, ""), dated
        assert why in refused.stderr
    assert "proves nothing: whoever holds the revealed key" in (await command(verify)).stderr
    with pytest.raises(ProvesNothing):
        ttmark.Key.from_revealed("old.json", dated=tomorrow)
    with pytest.raises(ProvesNothing):
        ttmark.Key.from_revealed("old.json", dated=None)


async def test_other_keys_and_a_record_that_was_changed_are_refused(service: Service, folder: Path) -> None:
    await over()
    await done("keys reveal old --version 1 --out old.json --i-understand old")
    file = json.loads(content("old.json"))
    secret, mark = file["secret"], file["mark"]
    others = {**secret, "secrets": {"prf_keys": ["00" * 16] * 4}}
    other = PortableMark.of(RevealedKey.read(content("old.json")).profile, MarkSecret(**others))
    for changed, why in (
        ({"secret": others}, "does not commit to this secret"),
        ({"secret": others, "mark": other.stored()}, "commits to other PRF keys"),
        ({"secret": {**secret, "salt": "00" * 32}}, "does not commit to this secret"),
        ({"version": 2}, "commits to other PRF keys"),
        ({"mark": {**mark, "commitment": "00" * 32}}, "commits to other PRF keys"),
        ({"record": file["record"].replace('"old"', '"new"')}, "was changed"),
        ({"format": "ttmark revealed key 2"}, "format"),
    ):
        put("changed.json", json.dumps({**file, **changed}).encode())
        with pytest.raises(MarkRefused, match=why):
            ttmark.Key.from_revealed("changed.json", dated=datetime.now(UTC) - timedelta(seconds=1))


async def test_what_is_in_use_or_may_be_is_not_revealed(service: Service, folder: Path) -> None:
    reveal = "keys reveal old --out old.json --i-understand old --version"
    primary = await command(f"{reveal} 1")
    assert (primary.exit_code, "is primary: it marks new texts" in primary.stderr) == (1, True)
    await done("keys rotate old")
    assert "is pending" in (await command(f"{reveal} 2")).stderr
    await done("keys promote old 2 --force")
    assert "is active: its texts are looked for" in (await command(f"{reveal} 1")).stderr
    store = open_store(f"sqlite:///{folder / 'keys.db'}")
    reporter = ReplicaReporter(store, "generation-1", max_age_seconds=900)
    await reporter.report({"old": 3})
    await done("keys retire old 1 --yes")
    assert "may still be used by generation-1" in (await command(f"{reveal} 1")).stderr
    await reporter.report({"old": 4})
    unconfirmed = await command("keys reveal old --version 1 --out old.json --i-understand o")
    assert "--i-understand" in unconfirmed.output
    assert not there("old.json")
    await done(f"{reveal} 1")
    await store.close()
    made = [one for one in events(folder) if one.get("key_id") == "old"]
    assert [one["action"] for one in made][-1] == "key.reveal"
    committed = json.loads(content("old.json"))["mark"]["commitment"]
    assert made[-1]["commitment"] == made[0]["commitment"] == committed
    listed = json.loads((await done("keys list --json")).stdout)
    (own,) = [one for one in listed if one["key_id"] == "old"]
    assert [one["revealed_at"] is None for one in own["versions"]] == [False, True]


async def test_a_version_without_a_record_needs_an_export_that_has_it(service, folder, monkeypatch):
    await over()
    await done("audit export kept.jsonl")
    for segment in (folder / "audit").glob("*.jsonl"):
        segment.rename(folder / segment.name)
    (folder / "anew").mkdir()
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", "anew")
    reveal = "keys reveal old --version 1 --out old.json --i-understand old"
    missing = await command(reveal)
    assert missing.exit_code == 1
    put("cut.jsonl", content("kept.jsonl").rpartition(b'{"export"')[0])
    assert "is no export of an audit trail" in (await command(f"{reveal} --trail cut.jsonl")).stderr
    assert not there("old.json")
    await done(f"{reveal} --trail kept.jsonl")
    assert RevealedKey.read(content("old.json")).published.event["action"] == "key.create"


def events(folder: Path) -> list[dict[str, object]]:
    parts = [path.read_bytes() for path in sorted((folder / "audit").glob("*.jsonl"))]
    return [json.loads(line)["event"] for part in parts for line in part.splitlines()]
