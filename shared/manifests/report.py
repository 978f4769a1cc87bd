"""What the C2PA library says of a manifest; to be run on strangers' manifests in a process that may die."""

import io
import json
from collections.abc import Mapping
from typing import Any

from ttmark.shared.schemas.manifests import Binding, ManifestClaims, ManifestReport
from ttmark.shared.signpost import ASSERTION

_FORMAT = "application/c2pa"
# The text is not here: whether it is the one that was signed is seen by whoever has it.
_OF_THE_TEXT = "assertion.dataHash."
_UNTRUSTED = "signingCredential.untrusted"
_DATA_HASH = "c2pa.hash.data"
_LONGEST = 200
_SETTINGS = {
    "verify": {"remote_manifest_fetch": False, "ocsp_fetch": False, "verify_trust": True},
    "core": {"decode_identity_assertions": False},
}


def manifest_report(manifest: bytes, anchors: str | None) -> ManifestReport:
    """Signature, certificates and assertions, without the network.

    Args:
        anchors: certificates in PEM that are trusted; None: none is.
    """
    import c2pa

    trust = {} if anchors is None else {"trust": {"trust_anchors": anchors}}
    try:
        with (
            c2pa.Context.from_dict(_SETTINGS | trust) as context,
            c2pa.Reader(_FORMAT, io.BytesIO(), manifest, context) as reader,
        ):
            return _report(json.loads(reader.detailed_json()))
    except (c2pa.C2paError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ManifestReport(fault="manifest.unreadable")


def _report(store: Mapping[str, Any]) -> ManifestReport:
    label = store["active_manifest"]
    manifest, results = store["manifests"][label], store["validation_results"]["activeManifest"]
    passed = [(entry["code"], entry.get("url", "")) for entry in results["success"]]
    codes = {code for code, _ in passed}
    binding = _binding(manifest["assertion_store"], passed)
    failed = [code for entry in results["failure"] if not (code := entry["code"]).startswith(_OF_THE_TEXT)]
    faults = [code for code in failed if code != _UNTRUSTED]
    signed = "claimSignature.validated" in codes
    fault = None
    if faults:
        fault = _short(faults[0])
    elif not signed:
        fault = "claimSignature.missing"
    elif binding is None:
        fault = "claim.hardBindings.missing"
    return ManifestReport(
        fault=fault,
        trusted=_UNTRUSTED not in failed and "signingCredential.trusted" in codes,
        binding=binding,
        claims=None if fault else _claims(manifest),
    )


def _binding(assertions: Mapping[str, Any], passed: list[tuple[str, str]]) -> Binding | None:
    """The one hash of the text that the claim names; None where there is none, or another kind beside it."""
    if [name for name in assertions if name.startswith("c2pa.hash.")] != [_DATA_HASH]:
        return None
    if not any(
        code == "assertion.hashedURI.match" and url.endswith(f"/{_DATA_HASH}") for code, url in passed
    ):
        return None
    data = assertions[_DATA_HASH]
    if len(data["exclusions"]) != 1:
        return None
    left_out = data["exclusions"][0]
    return Binding(start=left_out["start"], length=left_out["length"], alg=data["alg"], hash=data["hash"])


def _claims(manifest: Mapping[str, Any]) -> ManifestClaims:
    action = _created(manifest["assertion_store"])
    generator = manifest["claim"].get("claim_generator_info") or {}
    agent = action.get("softwareAgent")
    signature = manifest["signature"]
    return ManifestClaims(
        digital_source_type=_word(action.get("digitalSourceType")),
        software=_word(agent.get("name") if isinstance(agent, dict) else agent),
        time=_word(action.get("when")),
        claim_generator=_word(generator.get("name")),
        signer=_word(signature.get("common_name") or signature.get("issuer")),
        organization=_word(signature.get("issuer")),
        signpost=next(
            (
                _word(data.get("url"))
                for name, data in manifest["assertion_store"].items()
                if name.endswith(ASSERTION)
            ),
            None,
        ),
    )


def _created(assertions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The action that made the text; an empty one where the manifest names none."""
    for name, assertion in assertions.items():
        if name.startswith("c2pa.actions"):
            for action in assertion["actions"]:
                if action.get("action") == "c2pa.created":
                    return dict(action)
    return {}


def _word(value: object) -> str | None:
    return _short(value) if isinstance(value, str) else None


def _short(value: str) -> str:
    return "".join(character for character in value if character.isprintable())[:_LONGEST]
