"""`ttmark keys` and `ttmark tokens`."""

import asyncio
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from tests.harness.command_line import invoke, typed
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.settings.store import open_store
from ttmark.shared.keys.replica_reports import ReplicaReporter
from ttmark.shared.schemas.profile import PRESETS, Purpose
from ttmark.shared.vault.stores.store import RecordStore

KEK = "5e" * 32


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a key-encryption key and a tokenizer."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("TTMARK_"):
            monkeypatch.delenv(name)
    state = tmp_path / ".ttmark"
    state.mkdir()
    (state / "kek").write_text(KEK)
    (tmp_path / "model").mkdir()
    Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")).save(
        str(tmp_path / "model" / "tokenizer.json")
    )
    return tmp_path


def test_the_demo_models_tokenizer_is_known_by_name(folder: Path) -> None:
    by_name = typed("keys create k --tokenizer demo --json")
    by_path = typed(f"keys create l --tokenizer {DEMO_MODEL_PATH} --json")
    assert json.loads(by_name.stdout)["profile_id"] == json.loads(by_path.stdout)["profile_id"]
    (folder / "model").rename(folder / "demo")
    mine = typed("keys create m --tokenizer demo --json")
    assert json.loads(mine.stdout)["profile_id"] != json.loads(by_name.stdout)["profile_id"]


def test_the_life_of_a_key_from_the_command_line(folder: Path) -> None:
    created = typed("keys create k --tokenizer model --block-size 2 --context-width 4 --json")
    assert created.exit_code == 0, created.output
    document = json.loads(created.stdout)
    assert document["versions"][0]["state"] == "primary"
    assert document["profile_id"].startswith("gumbel-r2-")
    for command, expected in (
        ("rotate k", ["primary", "pending"]),
        ("promote k 2", ["active", "primary"]),
        ("retire k 1 --yes", ["retired", "primary"]),
        ("disable k 2 --yes", ["retired", "disabled"]),
    ):
        result = typed(f"keys {command} --json")
        assert [version["state"] for version in json.loads(result.stdout)["versions"]] == expected
    listed = typed("keys list --json")
    assert [key["key_id"] for key in json.loads(listed.stdout)] == ["k"]
    assert "retired" in typed("keys list").stdout


def test_a_key_with_a_pool_that_takes_payloads_from_the_command_line(folder: Path) -> None:
    profiles = [created("k --pool 16 --payloads"), created("l --pool 16"), created("one --pool 1")]
    assert [profile.get("payloads", False) for profile in profiles] == [True, False, False]
    header, *rows = typed("keys list").stdout.splitlines()
    assert "POOL" in header
    assert [row.split()[7] for row in rows] == ["16", "16", "1"]
    assert ["16 payloads" in row for row in rows] == [True, False, False]
    assert [key["profile"]["pool"] for key in json.loads(typed("keys list --json").stdout)] == [16, 16, 1]
    refused = typed("keys create two --tokenizer model --pool 1 --payloads")
    assert refused.exit_code == 2
    assert "payloads need a pool of several keys" in refused.output


def created(arguments: str) -> dict[str, object]:
    result = typed(f"keys create {arguments} --tokenizer model --json")
    assert result.exit_code == 0, result.output
    profile: dict[str, object] = json.loads(result.stdout)["profile"]
    return profile


@pytest.mark.parametrize("purpose", [None, *Purpose])
def test_a_purpose_chooses_the_profile_and_options_replace_its_fields(folder, purpose):
    of_purpose = f"--for {purpose}" if purpose else ""
    plain, changed = (
        created(f"a {of_purpose}"),
        created(f"b {of_purpose} --pool 5 --context-width 3 --block-size 1"),
    )
    preset = PRESETS[purpose or Purpose.ANSWERS]
    assert preset.items() <= plain.items()
    assert plain.get("pool", 1) == preset.get("pool", 1)
    assert changed == {**plain, "pool": 5, "context_width": 3, "block_size": 1}


@pytest.mark.parametrize("own", ["--scheme synthid", "--scheme synthid --param depth=30"])
def test_a_profile_of_ones_own_starts_from_the_defaults_of_the_scheme(folder: Path, own: str) -> None:
    assert created(f"a {own}") == {
        **created("b --scheme synthid --block-size 2 --context-width 4 --param depth=30 --pool 1"),
        "spec_version": 1,
    }


def test_a_token_is_printed_once_and_listed_without_its_secret(folder: Path) -> None:
    plain = typed("tokens create --tenant t --scope detect --expires-in-days 1 --label [/b]").stdout.strip()
    assert plain.startswith("ttm_")
    listed = typed("tokens list --json")
    (token,) = json.loads(listed.stdout)
    assert token["scopes"] == ["detect"]
    assert token["expires_at"] is not None
    shown = typed("tokens list").stdout
    assert "[/b]" in shown  # brackets are shown as they are
    assert plain.split("_")[2] not in listed.stdout + shown
    revoked = typed(f"tokens revoke {token['token_id']} --yes --json")
    assert json.loads(revoked.stdout)["revoked_at"] is not None


def test_empty_lists_say_what_to_do(folder: Path) -> None:
    assert "ttmark keys create" in typed("keys list").stdout
    assert "ttmark tokens create" in typed("tokens list").stdout
    assert typed("keys list --json").stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("keys rotate nope", "there is no key nope"),
        ("keys promote nope 1", "there is no key nope"),
        ("tokens revoke nope --yes", "there is no token nope"),
    ],
)
def test_what_fails_is_one_line_and_exit_code_1(folder: Path, arguments: str, message: str) -> None:
    result = typed(arguments)
    assert result.exit_code == 1
    assert result.stderr.strip() == f"ttmark: {message}"


@pytest.mark.parametrize(
    "arguments",
    [
        "keys create k",
        "keys create K --tokenizer model",
        "keys create k --tokenizer nowhere",
        "keys create k --tokenizer model --scheme nope",
        "keys create k --tokenizer model --block-size 9",
        "keys create k --tokenizer model --for poems",
        "keys create k --tokenizer model --for edited-text --scheme synthid",
        "keys create k --tokenizer model --for answers --param depth=16",
        "keys create k --tokenizer model --param depth",
        "keys create k --tokenizer model --param nope=1",
        "keys create k --tokenizer model --pool 0",
        "keys create k --tokenizer model --pool 4097",
        "keys promote k x",
        "tokens create --scope nope",
        "tokens create --expires-in-days -1",
        "tokens create --tenant A",
        "keys nonsense",
    ],
)
def test_bad_usage_is_exit_code_2(folder: Path, arguments: str) -> None:
    result = typed(arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"TTMARK_STORE_URL": "sqlite:////dev/fd"}, "key store /dev/fd"),
        ({"TTMARK_KEK": "00" * 32}, "which is not at hand"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line_and_exit_code_1(folder, monkeypatch, variables, message):
    assert typed("keys create k --tokenizer model").exit_code == 0
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = typed("keys list")
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_store_url_and_the_key_come_from_files_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "url").write_text(f"sqlite:///{folder / 'elsewhere.db'}\n")
    (folder / "secret").write_text(KEK + "\n")
    monkeypatch.setenv("TTMARK_STORE_URL_FILE", str(folder / "url"))
    monkeypatch.setenv("TTMARK_KEK_FILE", str(folder / "secret"))
    assert typed("keys create k --tokenizer model").exit_code == 0
    assert (folder / "elsewhere.db").exists()


def test_keys_are_rewrapped_backed_up_verified_and_restored(folder, monkeypatch):
    typed("keys create k --tokenizer model")
    typed("tokens create")
    monkeypatch.setenv("TTMARK_KEK", f"{'77' * 32}\n{KEK}")
    assert json.loads(typed("keys rewrap --json").stdout) == {"keys": 1, "tokens": 1}
    assert typed("keys verify").stdout == "1 key with 1 version and 1 token open\n"
    assert typed("keys rewrap").stdout == "rewrapped 0 keys and 0 tokens\n"
    monkeypatch.setenv("TTMARK_KEK", "77" * 32)
    report = json.loads(typed("keys verify --json").stdout)
    assert (report["keys"], report["versions"], report["tokens"], report["problems"]) == (1, 1, 1, {})
    assert typed("keys backup saved").exit_code == 0
    assert (folder / "saved").stat().st_mode & 0o777 == 0o600
    assert typed("keys backup saved").exit_code == 2
    monkeypatch.setenv("TTMARK_STORE_URL", f"sqlite:///{folder / 'new.db'}")
    restored = json.loads(typed("keys restore saved --json").stdout)
    assert restored == {"restored": 2, "unchanged": 0, "newer": 0}
    saved = invoke("keys", "backup", "-").stdout_bytes
    monkeypatch.setenv("TTMARK_STORE_URL", f"sqlite:///{folder / 'newer.db'}")
    piped = invoke("keys", "restore", "-", input=saved)
    assert "no counts of marked tokens: those that the store lost begin anew" in piped.stderr
    assert piped.stdout == "2 restored, 0 unchanged, 0 newer\n"
    assert typed("keys restore nowhere").exit_code == 2
    (folder / "saved").write_text("{}")
    assert typed("keys restore saved").exit_code == 1


def test_verify_exits_with_1_when_a_record_is_damaged(folder: Path) -> None:
    typed("keys create k --tokenizer model")
    connection = sqlite3.connect(folder / ".ttmark" / "keys.db")
    with connection:
        connection.execute("UPDATE records SET payload = 'garbage'")
    connection.close()
    result = typed("keys verify")
    assert result.exit_code == 1
    assert "key k: the stored record is damaged" in result.stderr.replace("key k: key k:", "key k:")


def test_a_promotion_waits_for_replicas_or_is_forced(folder: Path) -> None:
    typed("keys create k --tokenizer model")
    typed("keys rotate k")
    report(folder, "gen-1")
    refused = typed("keys promote k 2 --wait 0.6")
    assert refused.exit_code == 1
    assert "gen-1" in refused.stderr
    assert typed("keys promote k 2 --force").exit_code == 0


def test_a_ledger_is_kept_when_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_LEDGER_FILE", str(folder / "ledger"))
    typed("keys create k --tokenizer model")
    (folder / ".ttmark" / "keys.db").unlink()
    for leftover in (folder / ".ttmark").glob("keys.db-*"):
        leftover.unlink()
    result = typed("keys list")
    assert result.exit_code == 1
    assert "is gone" in result.stderr


def with_store(folder: Path, does: Callable[[RecordStore], Awaitable[object]]) -> None:
    async def done() -> None:
        store = open_store(f"sqlite:///{folder / '.ttmark' / 'keys.db'}")
        await does(store)
        await store.close()

    asyncio.run(done())


def mark(folder: Path, name: str, tokens: int) -> None:
    """Marks tokens as a generation replica does."""
    with_store(folder, lambda store: store.add({name: tokens}))


def report(folder: Path, replica: str) -> None:
    """A replica says that it knows the first epoch of `k`."""
    with_store(folder, lambda store: ReplicaReporter(store, replica, max_age_seconds=900).report({"k": 1}))


def states(output: str) -> list[str]:
    return [version["state"] for version in json.loads(output)["versions"]]


def test_a_key_is_rotated_when_it_has_marked_as_much_as_its_limit(folder: Path) -> None:
    typed("keys create k --tokenizer model")
    assert states(typed("keys rotate k --after-tokens 5000 --json").stdout) == ["primary"]
    mark(folder, "k/1", 4_999)
    assert "no key has reached its limit" in typed("keys upkeep").stdout
    row = typed("keys list").stdout.split("\n")[1].split()
    assert row[3:7] == ["1", "primary", "4999", "5000"]
    mark(folder, "k/1", 1)
    assert (
        "version 2 of k is in use from now on (marked tokens before it: 5000)" in typed("keys upkeep").stdout
    )
    (key,) = json.loads(typed("keys list --json").stdout)
    assert key["rotate_after_tokens"] == 5_000
    assert [version["marked_tokens"] for version in key["versions"]] == [5_000, 0]
    assert [version["state"] for version in key["versions"]] == ["active", "primary"]


def test_a_limit_that_is_exceeded_already_rotates_at_once_and_zero_ends_it(folder: Path) -> None:
    typed("keys create k --tokenizer model")
    mark(folder, "k/1", 10)
    assert states(typed("keys rotate k --after-tokens 10 --json").stdout) == ["active", "primary"]
    mark(folder, "k/2", 10)
    assert json.loads(typed("keys rotate k --after-tokens 0 --json").stdout)["rotate_after_tokens"] is None
    assert json.loads(typed("keys upkeep --json").stdout) == []
    assert typed("keys rotate k --after-tokens -1").exit_code == 2


def test_upkeep_names_the_replica_that_it_waits_for(folder: Path) -> None:
    typed("keys create k --tokenizer model")
    report(folder, "detect-1")
    mark(folder, "k/1", 10)
    assert states(typed("keys rotate k --after-tokens 10 --json").stdout) == ["primary", "pending"]
    waiting = typed("keys upkeep --wait 0.1")
    assert waiting.exit_code == 0
    assert "not known yet to detect-1" in waiting.stdout
