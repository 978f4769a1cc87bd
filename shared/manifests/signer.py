"""Signs manifests for generated texts with the operator's certificate."""

import hashlib
import io
import unicodedata
from datetime import UTC, datetime
from importlib.metadata import version
from threading import Lock
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ttmark.shared.manifests.report import manifest_report
from ttmark.shared.manifests.wrapper import wrapped, wrapper_size
from ttmark.shared.schemas.manifests import AI_SOURCE_TYPE
from ttmark.shared.signpost import ASSERTION, DOCUMENT_PATH

_CURVES = {"secp256r1": "es256", "secp384r1": "es384", "secp521r1": "es512"}
_SETTINGS = {
    "verify": {"verify_after_sign": False, "remote_manifest_fetch": False, "ocsp_fetch": False},
    "builder": {"created_assertion_labels": ["c2pa.actions"], "thumbnail": {"enabled": False}},
}
_TRIES = 4


class UnusableCredential(Exception):
    """Certificate and key cannot sign manifests; the message says why and holds nothing of the key."""


class ManifestSigner:
    """Makes the manifests of one service; any thread may ask it."""

    def __init__(self, chain: bytes, key: bytes, signpost: str | None = None) -> None:
        """Signs a trial manifest.

        Args:
            chain: certificates in PEM, the signer's first; the root may be left out.
            key: its private key in PEM, without a password.
            signpost: address of the deployment that manifests name as the one to ask; None: they name none.

        Raises:
            UnusableCredential: they are not that, do not belong together, or a verifier would refuse them.
        """
        import c2pa

        info = c2pa.C2paSignerInfo(_algorithm(chain, key), chain, key, None)
        self._lock, self._signpost = Lock(), signpost
        self._manifest_bytes = 3_000
        try:
            self._signer = c2pa.Signer.from_info(info)
            self._context = c2pa.Context.from_dict(_SETTINGS)
            fault = manifest_report(self._manifest("trial", "trial"), None).fault
        except c2pa.C2paError as error:
            raise UnusableCredential(f"the C2PA library does not take them ({error})") from None
        if fault is not None:
            raise UnusableCredential(f"verifiers would refuse what they sign ({fault})")

    def wrapper(self, text: str, *, model: str) -> str:
        """The characters that end the text and hold its manifest; `model` wrote it just now.

        Raises:
            UnusableCredential: the certificate has expired since the service started.
        """
        import c2pa

        try:
            return wrapped(self._manifest(text, model))
        except c2pa.C2paError as error:
            raise UnusableCredential(f"the C2PA library does not sign ({error})") from None

    def _manifest(self, text: str, model: str) -> bytes:
        content = unicodedata.normalize("NFC", text).encode("utf-8")
        definition = _definition(model, self._signpost)
        with self._lock:
            size = self._manifest_bytes
            for _ in range(_TRIES):  # the manifest names the size of its wrapper, which is made of it
                manifest = self._signed(definition, content, size)
                if len(manifest) == size:
                    return manifest
                self._manifest_bytes = size = len(manifest)
        raise RuntimeError("the size of a manifest changes with each signature")

    def _signed(self, definition: dict[str, object], content: bytes, size: int) -> bytes:
        import c2pa

        exclusion = {"start": len(content), "length": wrapper_size(size)}
        hashed = {
            "exclusions": [exclusion],
            "alg": "sha256",
            "hash": list(hashlib.sha256(content).digest()),
            "name": "text",
            "pad": [],
        }
        assertions = [*definition["assertions"], {"label": "c2pa.hash.data", "data": hashed}]  # type: ignore[misc]
        builder: c2pa.Builder = c2pa.Builder(definition | {"assertions": assertions}, self._context)
        builder.set_no_embed()
        return bytes(builder.sign(self._signer, "application/c2pa", io.BytesIO(content), io.BytesIO()))


def _definition(model: str, signpost: str | None) -> dict[str, object]:
    created = {
        "action": "c2pa.created",
        "when": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "digitalSourceType": AI_SOURCE_TYPE,
        "softwareAgent": {"name": model},
    }
    assertions: list[object] = [{"label": "c2pa.actions.v2", "data": {"actions": [created]}}]
    if signpost is not None:
        reversed_host = ".".join(reversed((urlsplit(signpost).hostname or "").split(".")))
        assertions.append({"label": reversed_host + ASSERTION, "data": {"url": signpost + DOCUMENT_PATH}})
    return {
        "claim_version": 2,
        "claim_generator_info": [{"name": "TTMark", "version": version("ttmark")}],
        "format": "text/plain",
        "assertions": assertions,
    }


def _algorithm(chain: bytes, key: bytes) -> str:
    """C2PA's name of what the key signs with.

    Raises:
        UnusableCredential: no PEM, the two do not belong together, or a kind of key that C2PA does not know.
    """
    try:
        certificate = x509.load_pem_x509_certificates(chain)[0]
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise UnusableCredential("the files hold no certificate and private key in PEM") from error
    if certificate.public_key() != private.public_key():
        raise UnusableCredential("the private key is not that of the first certificate")
    match private:
        case ec.EllipticCurvePrivateKey() if private.curve.name in _CURVES:
            return _CURVES[private.curve.name]
        case ed25519.Ed25519PrivateKey():
            return "ed25519"
        case rsa.RSAPrivateKey():
            return "ps256"
    raise UnusableCredential("C2PA signs with keys on P-256, P-384, P-521 and Ed25519, and with RSA")
