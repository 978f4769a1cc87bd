"""`ttmark keys export`: PRF keys leave only when asked for by name, on record, into a closed file."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from tests.harness.audit_records import events
from tests.harness.command_line import typed
from tests.unit.shared.keys.conftest import Clock
from tests.unit.shared.keys.test_secrets_stay_inside import assert_absent
from ttmark.shared.events import Event
from ttmark.shared.keys.backup import verify_store
from ttmark.shared.keys.key_codec import KIND
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.envelope import Envelope, open_envelope
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import InvalidTransition, NoSuchKey, StoreUnavailable
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault

CANARY = bytes.fromhex("c0ffee00c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77")


@pytest.fixture
def folder(place: Path, store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the commands; a store in it has no key yet."""
    monkeypatch.setattr("ttmark.shared.keys.key_codec.os.urandom", lambda count: CANARY[:count])
    return place


def trail(folder: Path) -> str:
    return "".join(file.read_text() for file in sorted((folder / "audit").glob("*.jsonl")))


def audited(folder: Path) -> list[dict[str, object]]:
    return [event for event in events(folder / "audit") if event["action"] != "audit.start"]


@pytest.fixture
async def key_k(folder: Path, ring: KeyRing, profile: Profile) -> KeyRing:
    """A key with a retired, an active and a primary version."""
    await ring.create("k", tenant="t", profile=profile)
    for version in (2, 3):
        await ring.rotate("k")
        await ring.promote("k", version)
    await ring.retire("k", 1)
    return ring


def test_the_command_writes_a_closed_file_and_says_so_on_record(key_k: KeyRing, folder: Path) -> None:
    result = typed("keys export k out.json --i-understand k")
    assert result.exit_code == 0, result.output
    assert (folder / "out.json").stat().st_mode & 0o777 == 0o600
    document = json.loads((folder / "out.json").read_text())
    assert (document["format"], document["key_id"], document["tenant"]) == ("ttmark keys 1", "k", "t")
    retired, active, primary = document["versions"]
    assert "prf_keys" not in retired
    assert [len(bytes.fromhex(key)) for one in (active, primary) for key in one["prf_keys"]] == [16, 16]
    (line,) = audited(folder)
    assert (line["action"], line["key_id"], line["keys"]) == ("key.export", "k", ["k/3", "k/2"])
    assert line["actor"]
    listed = json.loads(typed("keys list --json").stdout)[0]["versions"]
    assert [one["exported_at"] is None for one in listed] == [True, False, False]


def test_nothing_but_the_file_has_a_prf_key_and_the_file_has_no_secret(key_k, folder, caplog):
    with caplog.at_level(logging.DEBUG):
        result = typed("keys export k out.json --i-understand k")
    written = (folder / "out.json").read_text()
    exported = [key for one in json.loads(written)["versions"] for key in one.get("prf_keys", [])]
    elsewhere = result.output + caplog.text + trail(folder)
    for key in exported:
        assert_absent(bytes.fromhex(key), elsewhere)
    assert_absent(CANARY, written + elsewhere)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("export k out.json", 2, "--i-understand"),
        ("export k out.json --i-understand yes", 2, "name the key"),
        ("export k there.json --i-understand k", 2, "File exists"),
        ("export k nowhere/out.json --i-understand k", 2, "No such file"),
        ("export nope out.json --i-understand nope", 1, "ttmark: there is no key nope\n"),
    ],
)
async def test_nothing_leaves_unless_it_is_confirmed_and_can_be_written(
    key_k: KeyRing, folder: Path, arguments: str, code: int, message: str
) -> None:
    (folder / "there.json").write_text("mine")
    result = await asyncio.to_thread(typed, f"keys {arguments}")
    assert result.exit_code == code
    assert message in result.output
    assert audited(folder) == []
    assert (folder / "there.json").read_text() == "mine"
    assert not (folder / "out.json").exists()
    assert all(version.exported_at is None for version in (await key_k.info("k")).versions)


def test_without_an_audit_trail_nothing_leaves(key_k, folder, monkeypatch):
    monkeypatch.delenv("TTMARK_AUDIT_FOLDER")
    result = typed("keys export k out.json --i-understand k")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "TTMARK_AUDIT_FOLDER" in result.stderr
    assert not (folder / "out.json").exists()
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", str(folder / "no folder"))
    (folder / "no folder").write_text("a file")
    result = typed("keys export k out.json --i-understand k")
    assert (result.exit_code, (folder / "out.json").exists()) == (1, False)


def test_a_terminal_gets_keys_only_when_asked(key_k, folder, monkeypatch):
    monkeypatch.setattr("ttmark.services.features.key_export.commands.is_terminal", lambda: True)
    refused = typed("keys export k - --i-understand k")
    assert refused.exit_code == 2
    assert "prf_keys" not in refused.output
    assert audited(folder) == []
    shown = typed("keys export k - --i-understand k --to-terminal")
    assert json.loads(shown.stdout)["key_id"] == "k"
    monkeypatch.setattr("ttmark.services.features.key_export.commands.is_terminal", lambda: False)
    assert json.loads(typed("keys export k - --i-understand k").stdout)["key_id"] == "k"
    assert len(audited(folder)) == 2


async def test_the_record_says_which_versions_left_and_others_are_written_as_before(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, clock: Clock
) -> None:
    heard: list[Event] = []
    ring = KeyRing(store, kek, audit=heard.append, now=clock.now)
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    stored = await store.get(KIND, "k")
    assert stored is not None
    body = (await open_envelope(kek, KIND, "k", stored.payload, stored.revision)).body
    assert all("exported_at" not in version for version in body["versions"])
    info, key = await ring.export("k")
    assert [version.exported_at for version in info.versions] == [clock.now()] * 2
    assert [version.version for version in key.detectable] == [2, 1]
    assert heard[-1] == Event("key.export", key_id="k", tenant="t", keys=("k/2", "k/1"))
    await ring.promote("k", 2)
    await ring.rotate("k")
    versions = (await ring.info("k")).versions
    assert [version.exported_at is None for version in versions] == [False, False, True]
    assert (await verify_store(store, kek)).problems == {}


async def test_a_key_without_detected_versions_and_a_missing_one_are_not_exported(ring, profile):
    with pytest.raises(NoSuchKey):
        await ring.export("k")
    await ring.create("k", tenant="t", profile=profile)
    await ring.disable("k", 1)
    with pytest.raises(InvalidTransition, match="no version that is detected"):
        await ring.export("k")


async def test_what_the_store_does_not_let_write_exports_nothing(ring, store, kek, profile, monkeypatch):
    await ring.create("k", tenant="t", profile=profile)

    async def refuse(*_: object, **__: object) -> None:
        raise StoreUnavailable("the key store refused the command")

    monkeypatch.setattr(type(store), "put", refuse)
    heard: list[Event] = []
    with pytest.raises(StoreUnavailable):
        await KeyRing(store, kek, audit=heard.append).export("k")
    assert heard == []


async def test_what_an_earlier_release_made_public_stays_known(key_k, folder, store, kek, monkeypatch):
    public = "2026-03-01T12:00:00Z"

    def reveal(envelope: Envelope) -> dict[str, object]:
        retired, *others = envelope.body["versions"]
        return {**envelope.body, "versions": [{**retired, "revealed_at": public}, *others]}

    await Vault(store, kek, None).change(KIND, "k", reveal)
    await key_k.rotate("k")
    await key_k.export("k")
    stored = await store.get(KIND, "k")
    assert stored is not None
    versions = (await open_envelope(kek, KIND, "k", stored.payload, stored.revision)).body["versions"]
    assert [one.get("revealed_at") for one in versions] == [public, None, None, None]
    assert ["revealed_at" in one for one in versions] == [True, False, False, False]
    with pytest.raises(InvalidTransition, match="is retired"):
        await key_k.promote("k", 1, force=True)
    header, *rows = (await asyncio.to_thread(typed, "keys list")).stdout.splitlines()
    assert header.rstrip().endswith("REVEALED (UTC)")
    assert [row.rstrip().endswith("2026-03-01 12:00") for row in rows] == [True, False, False, False]
    assert (await asyncio.to_thread(typed, "keys backup all.backup")).exit_code == 0
    monkeypatch.setenv("TTMARK_STORE_URL", "sqlite:///other.db")
    assert (await asyncio.to_thread(typed, "keys restore all.backup")).exit_code == 0
    listed = json.loads((await asyncio.to_thread(typed, "keys list --json")).stdout)[0]["versions"]
    assert [one["revealed_at"] for one in listed] == [public, None, None, None]
