"""What manifests add to the answer about a document."""

from collections.abc import Sequence

from ttmark.detect_service.manifests.examiner import Found
from ttmark.detect_service.manifests.parting import PartedRequest
from ttmark.shared.detection_words import with_manifests
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detected import Basis
from ttmark.shared.schemas.detection import DetectionRequest, DetectionResult
from ttmark.shared.schemas.manifests import AI_SOURCE_TYPE, FoundManifest


def with_manifests_of(
    index: int,
    result: DetectionResult,
    parts: PartedRequest[DetectionRequest],
    found: Found,
    words: Words = ENGLISH,
) -> DetectionResult:
    """The result of document number `index` with its manifests, and places in its text as it was sent.

    Raises:
        Exception: what came up when they were set apart or examined.
    """
    failure = parts.failed.get(index)
    manifests = found.get(index)
    if failure is not None:
        raise failure
    if isinstance(manifests, BaseException):
        raise manifests
    return result if manifests is None else _with(parts.placed(index, result), manifests, words)


def _with(result: DetectionResult, manifests: Sequence[FoundManifest], words: Words) -> DetectionResult:
    if not manifests:
        return result
    alone = result.verdict != "watermarked" and any(_says_generated(one) for one in manifests)
    message = (
        None
        if result.message is None
        else with_manifests(result.message, manifests, alone=alone, words=words)
    )
    changed: dict[str, object] = {"metadata": list(manifests), "message": message}
    if alone:
        changed["basis"] = Basis.METADATA
    return result.model_copy(update=changed)


def _says_generated(manifest: FoundManifest) -> bool:
    """Whether a trusted signer says that a model wrote the text."""
    claims = manifest.claims
    return manifest.status == "valid" and claims is not None and claims.digital_source_type == AI_SOURCE_TYPE
