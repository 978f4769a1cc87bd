"""Keys of the library: private files, and the way into a key store and out of it."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

import ttmark
from tests.harness.command_line import typed
from tests.unit.shared.keys.test_commands import folder
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.library.key import KeyDetectsOnly
from ttmark.library.tokenizer import TokenizerUnknown
from ttmark.services.cli.key_store import run as run_on_store
from ttmark.shared.keys.key_files import NotAKeyFile
from ttmark.shared.tokenization import TextTokenizer

__all__ = ["folder"]


def test_a_new_key_has_the_products_profile() -> None:
    profile, prf_keys = ttmark.Key.new().marking(TextTokenizer.load(DEMO_MODEL_PATH), "demo")
    assert (profile.scheme, profile.context_width, profile.block_size) == ("gumbel", 2, 2)
    assert len(set(prf_keys)) == profile.pool == 4


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_a_block_size_changes_nothing_else_of_a_new_key(tokens: int) -> None:
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    profile, _ = ttmark.Key.new(block_size=tokens).marking(tokenizer, "demo")
    default, _ = ttmark.Key.new().marking(tokenizer, "demo")
    assert profile == default.model_copy(update={"block_size": tokens})


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"scheme": "syntid"}, "unknown scheme 'syntid'; known: synthid, dipmark, mcmark, gumbel"),
        ({"blocksize": 3}, "a profile has no field 'blocksize'"),
    ],
)
def test_a_wrong_field_is_one_line(field: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        ttmark.Key.new(**field)


def test_a_saved_key_is_private_and_comes_back_with_its_models(tmp_path: Path, key: ttmark.Key) -> None:
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    before = key.marking(tokenizer, "demo")
    file = tmp_path / "key.json"
    key.save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = ttmark.Key.load(file)
    assert again.models == {tokenizer.fingerprint: "demo"}
    assert list(again.variants(tokenizer.fingerprint)) == [before]


def test_no_secret_of_a_key_is_shown_or_copied(tmp_path: Path, key: ttmark.Key) -> None:
    key.save(tmp_path / "key.json")
    secret = json.loads((tmp_path / "key.json").read_text())["secret"]
    assert secret not in repr(key)
    with pytest.raises(TypeError, match="cannot be copied"):
        key.__reduce_ex__(2)
    (tmp_path / "key.json").write_text(json.dumps({"format": "ttmark library key 1", "secret": secret[:-1]}))
    with pytest.raises(NotAKeyFile) as caught:
        ttmark.Key.load(tmp_path / "key.json")
    assert secret[:-1] not in str(caught.value)


def test_a_key_that_knows_no_model_says_what_to_name(key: ttmark.Key) -> None:
    with pytest.raises(TokenizerUnknown, match="model='smollm2'"):
        ttmark.detect("A text.", key)


def test_an_imported_key_marks_in_the_store_as_it_does_in_the_library(folder: Path, key: ttmark.Key) -> None:
    key.save("library.json")
    result = typed(f"keys import mine library.json --tokenizer {DEMO_MODEL_PATH}")
    assert result.exit_code == 0, result.output
    opened = run_on_store(lambda store: store.ring.open("mine"))
    assert opened.primary is not None
    (variant,) = key.variants(TextTokenizer.load(DEMO_MODEL_PATH).fingerprint)
    assert (opened.profile, opened.primary.prf_keys) == variant
    (listed,) = json.loads(typed("keys list --json").stdout)
    assert listed["versions"][0]["exported_at"] == listed["created_at"]  # whoever gave the file has the key


def test_a_file_without_a_scheme_that_is_no_library_key_is_refused(folder: Path) -> None:
    Path("given.json").write_text('{"key": 123456789}')
    result = typed(f"keys import mine given.json --tokenizer {DEMO_MODEL_PATH}")
    assert result.exit_code == 2
    assert "--scheme" in result.output
    assert "123456789" not in result.output


def test_an_exported_key_detects_and_does_not_mark(
    folder: Path, monkeypatch: pytest.MonkeyPatch, model: ttmark.Model
) -> None:
    Path("audit").mkdir()
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", "audit")
    own = ttmark.Key.new()
    own.save("library.json")
    imported = typed(f"keys import mine library.json --tokenizer {DEMO_MODEL_PATH}")
    assert imported.exit_code == 0, imported.output
    assert typed("keys export mine exported.json --i-understand mine").exit_code == 0
    exported = ttmark.Key.load("exported.json")
    text = model.generate("The old lighthouse stood", key=own, max_new_tokens=80, seed=1)
    found = ttmark.detect(text, exported, model=model)
    assert found.watermarked
    same = ttmark.detect(text, own)
    assert (found.log10_e, found.log10_p) == (same.log10_e, same.log10_p)
    with pytest.raises(KeyDetectsOnly):
        model.generate("x", key=exported, max_new_tokens=1)
