"""A file that holds something else than its setting wants is one line that names the variable."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tests.unit.services.settings.wrong_values import CLASSES, SECRET
from ttmark.services.settings.base import variable
from ttmark.services.startup import StartupError

READERS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "TTMARK_C2PA_CERT_FILE": ("SigningSettings", lambda one: one.load_signer()),
    "TTMARK_C2PA_KEY_FILE": ("SigningSettings", lambda one: one.load_signer()),
    "TTMARK_C2PA_TRUST_FILE": ("TrustSettings", lambda one: beside(one, "manifest_examiner")(one, None)),
    "TTMARK_CASE_KEY_FILE": ("CaseSettings", lambda one: one.load_case_key()),
    "TTMARK_ENGINE_FILE": ("EngineFileSettings", lambda one: beside(one, "arguments_of")(one.engine_file)),
    "TTMARK_KEK_FILE": ("KeyStoreSettings", lambda one: one.load_kek()),
    "TTMARK_LEDGER_FILE": ("KeyStoreSettings", lambda one: one.open_ledger()),
    "TTMARK_POLICY_FILE": ("PolicySettings", lambda one: one.load_policy()),
    "TTMARK_PUBLIC_TOKEN_FILE": ("PublicSettings", lambda one: one.load_public_token()),
    "TTMARK_READER_CA_FILE": ("ReaderSettings", lambda one: beside(one, "open_reader")(one)),
    "TTMARK_READER_TOKEN_FILE": ("ReaderSettings", lambda one: beside(one, "open_reader")(one)),
    "TTMARK_STORE_URL_FILE": ("KeyStoreSettings", lambda one: one.url()),
    "TTMARK_TOKEN_FILE": ("CanarySettings", lambda one: one.access_token()),
    "TTMARK_WEBHOOK_SECRET_FILE": ("JobSettings", lambda one: one.open_webhooks()),
}
KINDS = {cls.__name__: cls for cls in CLASSES}
FILES = {name for name, (kind, _) in READERS.items() if kind in KINDS}


def beside(settings: object, name: str) -> Any:
    """What the module that opens a feature has under a name."""
    return getattr(import_module(type(settings).__module__.replace(".settings", ".service")), name)


def read(name: str) -> object:
    kind, how = READERS[name]
    return how(KINDS[kind]())


def test_every_setting_of_a_file_is_read_here() -> None:
    fields = {field for cls in CLASSES for field in cls.model_fields if field.endswith("_file")}
    assert {variable(field) for field in fields} == FILES


@pytest.mark.parametrize("content", [b"", f"{SECRET} {SECRET}".encode(), b"\xff\xfe\x00\x81"])
@pytest.mark.parametrize("name", sorted(FILES))
def test_other_content_is_one_line(name, content, tmp_path, monkeypatch):
    monkeypatch.setenv("TTMARK_WEBHOOK_HOSTS", "hooks.example.org")
    monkeypatch.setenv("TTMARK_READER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("TTMARK_READER_MODEL", "demo")
    for one in ("TTMARK_C2PA_CERT_FILE", "TTMARK_C2PA_KEY_FILE"):
        if name.startswith("TTMARK_C2PA"):
            monkeypatch.setenv(one, str(tmp_path / "file"))
    monkeypatch.setenv(name, str(tmp_path / "file"))
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "file").chmod(0o600)
    if name == "TTMARK_ENGINE_FILE" and content == b"":
        assert read(name) == {}  # no arguments
        return
    if name == "TTMARK_READER_TOKEN_FILE" and content == b"":
        assert read(name) is None  # no reader, until an operator puts a token there
        return
    with pytest.raises(StartupError) as refused:
        read(name)
    said = str(refused.value)
    assert name in said
    assert SECRET not in said
    assert "\n" not in said
