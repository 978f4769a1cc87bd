"""What the answers about a file's texts say of each kind of mark."""

from collections.abc import Iterator, Mapping, Sequence

from ttmark.shared.http.service_errors import InternalError, ServiceError, TooLarge, Unprocessable
from ttmark.shared.schemas.detection.content_provenance import (
    OURS,
    CheckedText,
    MarkKind,
    NotLookedAt,
    ProvenanceResult,
    ValidationState,
)
from ttmark.shared.schemas.detection.detect import DetectedKey, DetectionResult, Verdict

Models = Mapping[str, str | None]
"""The model of a key, by the key's id."""
Answered = Sequence[tuple[CheckedText, DetectionResult]]

_KINDS: tuple[MarkKind, ...] = ("c2pa", "text_watermark")
_REFUSALS: dict[str, type[ServiceError]] = {InternalError.code: InternalError, TooLarge.code: TooLarge}
# From the one that says most; to C2PA a manifest is valid that is well signed, be it by anybody.
_STATES: dict[str, ValidationState] = {
    "valid": "trusted",
    "not_trusted": "valid",
    "does_not_verify": "invalid",
}


def outcomes(
    texts: Sequence[CheckedText], models: Models
) -> tuple[list[ProvenanceResult], list[NotLookedAt]]:
    """C2PA's result, one of our mark and one of each scheme of others; and of what they say nothing.

    Raises:
        ServiceError: nothing can be said of any text, or of the manifests that are there.
    """
    answered: list[tuple[CheckedText, DetectionResult]] = []
    silent: list[NotLookedAt] = []
    for text in texts:
        error = None if text.result is None else text.result.error
        if text.result is not None and error is None:
            answered.append((text, text.result))
            continue
        code, why = (error.code, error.message) if error else ("", text.problem or "")
        if len(texts) == 1:
            raise _REFUSALS.get(code, Unprocessable)(why, param="file")
        silent += [NotLookedAt(type=kind, name=text.name, reason=code or why) for kind in _KINDS]
    if not answered:
        raise Unprocessable(f"Of the file's texts none has an answer: {silent[0].reason}", param="file")
    found = [_of_manifests(answered, silent)]
    schemes = sorted({scheme for _, result in answered for scheme in _verdicts(result)} | {""})
    for scheme in schemes:
        found += _of_scheme(scheme, answered, models, silent)
    return found, silent


def _of_manifests(answered: Answered, silent: list[NotLookedAt]) -> ProvenanceResult:
    """Of the manifest that says most."""
    manifests = [one for _, result in answered for one in result.metadata or ()]
    examined = [one for one in manifests if one.status in _STATES]
    for text, result in answered:
        reasons = {one.reason or "" for one in result.metadata or () if one.status not in _STATES}
        silent += [NotLookedAt(type="c2pa", name=text.name, reason=one) for one in sorted(reasons)]
    if manifests and not examined:
        raise Unprocessable(f"The file holds a C2PA manifest, and {silent[-1].reason}.", param="file")
    order = list(_STATES)
    best = min(examined, key=lambda one: (not one.says_generated, order.index(one.status)), default=None)
    if best is None:
        return ProvenanceResult(type="c2pa", outcome="not_detected")
    of_best = ProvenanceResult(
        type="c2pa",
        outcome="detected" if best.says_generated else "not_detected",
        validation_state=_STATES[best.status],
    )
    if (claims := best.claims) is None:
        return of_best
    said = {"generated_at": claims.time, "model": claims.software}
    return of_best.model_copy(update={**said, "issuer": claims.organization or claims.signer})


def _verdicts(result: DetectionResult) -> Mapping[str, Verdict]:
    """By scheme; our own is the empty one, and left out where no key was tried."""
    if result.verdict_of_scheme:
        return result.verdict_of_scheme
    return {"": result.verdict} if result.hypotheses else {}


def _of_scheme(
    scheme: str, answered: Answered, models: Models, silent: list[NotLookedAt]
) -> Iterator[ProvenanceResult]:
    """What is said of the texts under the keys of a scheme, if of one of them anything is."""
    verdicts = [_verdicts(result).get(scheme) for _, result in answered]
    for (text, _), verdict in zip(answered, verdicts, strict=True):
        if verdict not in ("watermarked", "not_detected"):
            reason = verdict or "no_key"
            silent.append(
                NotLookedAt(type="text_watermark", scheme=scheme or OURS, name=text.name, reason=reason)
            )
    if "watermarked" in verdicts:
        keys = (_key(result, scheme) for _, result in answered)
        key = next((one for one in keys if one is not None), None)
        yield ProvenanceResult(
            type="text_watermark",
            outcome="detected",
            scheme=scheme or OURS,
            key=key,
            model=None if key is None else models.get(key.key_id),
        )
    elif "not_detected" in verdicts:
        yield ProvenanceResult(type="text_watermark", outcome="not_detected", scheme=scheme or OURS)


def _key(result: DetectionResult, scheme: str) -> DetectedKey | None:
    """The key of the scheme that was found; None where none was, or the caller may not see it."""
    keys = [result.key, *(mark.key for mark in result.foreign_marks or ())]
    return next((key for key in keys if key is not None and (key.scheme or "") == scheme), None)
