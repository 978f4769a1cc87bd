"""A file that holds something else than its setting wants is one line that names the variable."""

from collections.abc import Callable

import pytest

from tests.unit.services.settings.wrong_values import CLASSES, SECRET
from ttmark.detect_service.features.cases.settings import CaseSettings
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.jobs.settings import JobSettings
from ttmark.detect_service.features.manifests.service import manifest_examiner
from ttmark.detect_service.features.manifests.settings import TrustSettings
from ttmark.detect_service.features.public.settings import PublicSettings
from ttmark.detect_service.features.reader.service import open_reader
from ttmark.detect_service.features.reader.settings import ReaderSettings
from ttmark.gen_service.features.manifests.settings import SigningSettings
from ttmark.gen_service.features.policy.settings import PolicySettings
from ttmark.gen_service.features.vllm.service import arguments_of
from ttmark.gen_service.features.vllm.settings import EngineFileSettings
from ttmark.services.features.canary.settings import CanarySettings
from ttmark.services.settings.base import variable
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError

READERS: dict[str, Callable[[], object]] = {
    "TTMARK_C2PA_CERT_FILE": lambda: SigningSettings().load_signer(),
    "TTMARK_C2PA_KEY_FILE": lambda: SigningSettings().load_signer(),
    "TTMARK_C2PA_TRUST_FILE": lambda: manifest_examiner(TrustSettings(), ExtractionWorkers()),
    "TTMARK_CASE_KEY_FILE": lambda: CaseSettings().load_case_key(),
    "TTMARK_ENGINE_FILE": lambda: arguments_of(EngineFileSettings().engine_file),
    "TTMARK_KEK_FILE": lambda: KeyStoreSettings().load_kek(),
    "TTMARK_LEDGER_FILE": lambda: KeyStoreSettings().open_ledger(),
    "TTMARK_POLICY_FILE": lambda: PolicySettings().load_policy(),
    "TTMARK_PUBLIC_TOKEN_FILE": lambda: PublicSettings().load_public_token(),
    "TTMARK_READER_CA_FILE": lambda: open_reader(ReaderSettings()),
    "TTMARK_READER_TOKEN_FILE": lambda: open_reader(ReaderSettings()),
    "TTMARK_STORE_URL_FILE": lambda: KeyStoreSettings().url(),
    "TTMARK_TOKEN_FILE": lambda: CanarySettings().access_token(),
    "TTMARK_WEBHOOK_SECRET_FILE": lambda: JobSettings().open_webhooks(),
}


def test_every_setting_of_a_file_is_read_here() -> None:
    fields = {field for cls in CLASSES for field in cls.model_fields if field.endswith("_file")}
    assert {variable(field) for field in fields} == READERS.keys()


@pytest.mark.parametrize("content", [b"", f"{SECRET} {SECRET}".encode(), b"\xff\xfe\x00\x81"])
@pytest.mark.parametrize("name", READERS)
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
        assert READERS[name]() == {}  # no arguments
        return
    if name == "TTMARK_READER_TOKEN_FILE" and content == b"":
        assert READERS[name]() is None  # no reader, until an operator puts a token there
        return
    with pytest.raises(StartupError) as refused:
        READERS[name]()
    said = str(refused.value)
    assert name in said
    assert SECRET not in said
    assert "\n" not in said
