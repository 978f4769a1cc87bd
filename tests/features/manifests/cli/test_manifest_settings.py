"""A service does not start with what it cannot sign with, or with files that others may write."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.certificates import credential
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.manifests.service import manifest_examiner
from ttmark.detect_service.features.manifests.settings import TrustSettings
from ttmark.gen_service.features.manifests.settings import SigningSettings
from ttmark.gen_service.features.policy import service as policy
from ttmark.services.startup import StartupError

Files = Callable[..., SigningSettings]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Settings that name a certificate and a key in files."""

    def write(chain: bytes, key: bytes, mode: int = 0o600, **others: str) -> SigningSettings:
        for name, content in (("chain.pem", chain), ("key.pem", key)):
            (tmp_path / name).write_bytes(content)
            (tmp_path / name).chmod(mode)
        return SigningSettings.model_validate(
            {"c2pa_cert_file": tmp_path / "chain.pem", "c2pa_key_file": tmp_path / "key.pem"} | others
        )

    return write


def test_a_certificate_and_its_key_make_a_signer(files: Files) -> None:
    ours = credential()
    assert files(ours.chain, ours.key, mode=0o644).load_signer() is not None
    assert files(ours.chain, ours.key, c2pa_manifests="always").load_signer() is not None
    assert SigningSettings().load_signer() is None


def test_a_rule_of_the_policy_needs_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy.yaml").write_text("rules: [{name: a, when: {}, then: mark, manifest: always}]")
    monkeypatch.setenv("TTMARK_POLICY_FILE", str(tmp_path / "policy.yaml"))
    with pytest.raises(StartupError, match="a rule of TTMARK_POLICY_FILE needs TTMARK_C2PA_CERT_FILE"):
        policy.opened(None)
    monkeypatch.setenv("TTMARK_C2PA_CERT_FILE", str(tmp_path / "policy.yaml"))
    assert policy.opened(None).hooks


def test_what_cannot_sign_is_refused_at_the_start(files: Files, tmp_path: Path) -> None:
    ours, expired, other = credential(), credential(days=-1), credential()
    cases: dict[str, Callable[[], SigningSettings]] = {
        "not valid at time of signing": lambda: files(expired.chain, expired.key),
        "not that of the first certificate": lambda: files(ours.chain, other.key),
        "no certificate and private key in PEM": lambda: files(b"nothing", ours.key),
        "go together": lambda: SigningSettings(c2pa_cert_file=tmp_path / "chain.pem"),
        "needs TTMARK_C2PA_CERT_FILE": lambda: SigningSettings(c2pa_manifests="always"),
        "there is no such file": lambda: SigningSettings(
            c2pa_cert_file=tmp_path / "absent", c2pa_key_file=tmp_path / "absent"
        ),
    }
    for message, settings in cases.items():
        with pytest.raises(StartupError, match=message) as raised:
            settings().load_signer()
        assert "PRIVATE" not in str(raised.value)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_refused(files: Files, tmp_path: Path, mode: int) -> None:
    ours = credential()
    with pytest.raises(StartupError, match="others than its owner may write"):
        files(ours.chain, ours.key, mode=mode).load_signer()
    trusted = TrustSettings(c2pa_trust_file=tmp_path / "chain.pem")
    with pytest.raises(StartupError, match="others than its owner may write"):
        manifest_examiner(trusted, ExtractionWorkers())


def test_a_trust_list_holds_certificates(tmp_path: Path) -> None:
    path = tmp_path / "trust.pem"
    path.write_bytes(credential().root + credential().root)
    path.chmod(0o644)
    settings = TrustSettings(c2pa_trust_file=path)
    assert manifest_examiner(settings, ExtractionWorkers()).anchors == path.read_text()
    assert manifest_examiner(TrustSettings(), ExtractionWorkers()).anchors is None
    path.write_text("none")
    with pytest.raises(StartupError, match="holds no certificates in PEM"):
        manifest_examiner(settings, ExtractionWorkers())
