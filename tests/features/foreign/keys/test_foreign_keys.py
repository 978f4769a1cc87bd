"""`ttmark keys import`, and what becomes of a key of another system afterwards."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.harness.audit_records import events
from tests.harness.command_line import typed
from tests.unit.shared.keys.test_commands import folder
from ttmark.services.cli.key_store import KeyStore
from ttmark.services.cli.key_store import run as run_on_store
from ttmark.shared.keys.held_keys import ForeignKey
from ttmark.shared.keys.key_codec import KIND
from ttmark.shared.keys.key_records import KeyRecord
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

__all__ = ["folder"]

SECRET = 987654321987
FILES: dict[str, dict[str, object]] = {
    "vllm-gumbel": {"key": SECRET, "algorithm": "gumbel", "context_width": 5, "deduplicate_contexts": "all"},
    "vllm-dual-gumbel": {"key": SECRET, "algorithm": "dual_key_gumbel", "alpha": 0.2},
    "sglang-gumbel": {"key": "987654321987", "key_b": "0x987654321988", "enforce_all": True},
    "kgw": {"hashing_key": SECRET, "vocab_size": 49152, "bias": 2.5, "seeding_scheme": "selfhash"},
    "synthid-text": {"keys": [SECRET, 5], "ngram_len": 5, "debug_mode": False},
}


def imported(scheme: str) -> str:
    Path("given.json").write_text(json.dumps(FILES[scheme]))
    result = typed(f"keys import {scheme} given.json --scheme {scheme} --tokenizer model")
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("scheme", list(FOREIGN_SCHEMES))
def test_every_scheme_is_imported_and_its_secrets_stay_in_the_store(folder: Path, scheme: str) -> None:
    said = imported(scheme)
    assert FOREIGN_SCHEMES[scheme].title in said

    async def opened(store: KeyStore) -> tuple[ForeignKey, bytes]:
        keys, problems = await store.ring.open_all()
        assert not problems
        (key,) = keys.values()
        assert isinstance(key, ForeignKey)
        stored = await store.records.get(KIND, scheme)
        assert stored is not None
        return key, stored.payload

    key, payload = run_on_store(opened)
    listed = [said, typed("keys list").stdout, typed("keys list --json").stdout, payload.decode()]
    listed.append(repr(key) + repr(key.versions) + str(key.versions[0].mark))
    assert not [text for text in listed if str(SECRET) in text]
    assert f"{scheme}-" in listed[1]
    assert "(foreign)" in listed[1]
    assert json.loads(listed[2])[0]["profile"]["foreign"] is True
    assert json.loads(listed[2])[0]["versions"][0]["exported_at"] is not None
    assert json.loads(typed("keys verify --json").stdout)["keys"] == 1


def test_a_foreign_key_can_be_retired_and_disabled_and_nothing_else(folder, monkeypatch):
    (folder / "audit").mkdir()
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", "audit")
    imported("vllm-gumbel")
    for command in (
        "rotate vllm-gumbel",
        "rotate vllm-gumbel --after-tokens 5",
        "promote vllm-gumbel 1",
        "promote vllm-gumbel 1 --force",
        "export vllm-gumbel out.json --i-understand vllm-gumbel",
    ):
        refused = typed(f"keys {command}")
        assert refused.exit_code == 1, command
        assert "is another system's (vllm-gumbel)" in refused.output
    assert not Path("out.json").exists()
    assert typed("keys upkeep").exit_code == 0
    assert "active" in typed("keys list").stdout
    assert "retired" in typed("keys retire vllm-gumbel 1 --yes").stdout
    assert "disabled" in typed("keys disable vllm-gumbel 1 --yes").stdout
    audit = [event for event in events(folder / "audit") if event["action"] != "audit.start"]
    assert [event["action"] for event in audit] == ["key.import", "key.retire", "key.disable"]
    assert str(SECRET) not in str(audit)


@pytest.mark.parametrize(
    ("scheme", "content", "options", "words"),
    [
        ("vllm-gumbel", "[]", "", "JSON object"),
        ("vllm-gumbel", "{", "", "JSON object"),
        ("vllm-gumbel", '{"context_width": 4}', "", "missing: key"),
        ("vllm-gumbel", '{"key": "987654321987"}', "", "key must be a whole number"),
        ("vllm-gumbel", '{"key": 987654321987, "salt": 1}', "", "unknown: salt"),
        ("vllm-gumbel", '{"key": 987654321987, "prf": "threefry"}', "", "prf must be philox"),
        ("vllm-gumbel", '{"key": 987654321987, "algorithm": "dual_key_gumbel"}', "", "must be gumbel"),
        ("vllm-gumbel", '{"key": 987654321987, "context_width": 4.5}', "", "context_width must be a whole"),
        ("vllm-gumbel", '{"key": 987654321987, "context_width": true}', "", "context_width must be a whole"),
        ("vllm-gumbel", '{"key": -987654321987}', "", "2**64"),
        ("vllm-gumbel", "{}", "--param key=987654321987", "key is a secret"),
        ("sglang-gumbel", '{"key": 987654321987}', "", "hexadecimal"),
        ("sglang-gumbel", '{"key": "987654321987g"}', "", "hexadecimal"),
        ("kgw", '{"hashing_key": 987654321987}', "", "missing: vocab_size"),
        ("kgw", '{"hashing_key": -987654321987}', "--param vocab_size=500", "hashing_key"),
        ("synthid-text", '{"keys": 987654321987, "ngram_len": 5}', "", "list of whole numbers"),
        ("synthid-text", '{"keys": [987654321987.5], "ngram_len": 5}', "", "keys must be a whole number"),
        ("markmywords", "{}", "", "synthid-text"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_and_no_secret_is(folder, scheme, content, options, words):
    Path("given.json").write_text(content)
    refused = typed(f"keys import k given.json --scheme {scheme} --tokenizer model {options}")
    assert refused.exit_code == 2
    assert words in " ".join(refused.output.replace("│", " ").split())
    assert str(SECRET) not in refused.output
    assert typed("keys list --json").stdout == "[]\n"


def test_parameters_that_are_no_secret_can_be_options(folder: Path) -> None:
    Path("given.json").write_text('{"hashing_key": 5}')
    typed(
        "keys import k given.json --scheme kgw --tokenizer model"
        " --param vocab_size=500 --param context_width=2"
    )
    (key,) = json.loads(typed("keys list --json").stdout)
    assert key["profile"]["parameters"] == {
        "vocab_size": 500,
        "context_width": 2,
        "greenlist_ratio": 0.25,
        "seeding_scheme": "lefthash",
    }


def test_a_name_that_is_taken_and_a_missing_file_are_refused(folder: Path) -> None:
    imported("vllm-gumbel")
    again = typed("keys import vllm-gumbel given.json --scheme vllm-gumbel --tokenizer model")
    assert (again.exit_code, "exists" in again.output) == (1, True)
    none = typed("keys import k none.json --scheme vllm-gumbel --tokenizer model")
    assert (none.exit_code, "cannot read none.json" in " ".join(none.output.split())) == (2, True)


def test_a_record_of_a_foreign_key_never_has_a_version_to_generate_with(folder: Path) -> None:
    imported("kgw")

    async def record(store: KeyStore) -> dict[str, object]:
        info = await store.ring.info("kgw")
        version = {**info.versions[0].model_dump(), "epoch": 1, "sealed_secret": "", "state": "primary"}
        return {**info.model_dump(exclude={"epoch"}), "versions": [version]}

    body = run_on_store(record)
    with pytest.raises(ValidationError, match="no version to generate with"):
        KeyRecord.model_validate(body)
