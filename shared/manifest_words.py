"""Manifests in words, for people."""

from collections.abc import Sequence

from ttmark.shared.schemas.detection import Message
from ttmark.shared.schemas.manifests import AI_SOURCE_TYPE, FoundManifest

_CHANGED = (
    "A signed manifest (C2PA) in the text does not verify ({reason}): text or manifest were changed, or they "
    "do not belong together."
)
_UNKNOWN = "A signed manifest (C2PA) in the text was not examined: {reason}."
_UNTRUSTED = (
    "A manifest (C2PA) verifies, but nobody on the trust list signed it: anybody can make such a one."
)
_HEADLINE = "A signed manifest says that a model wrote this text"
_CAUTION = "A manifest is easily removed: a text without one is not thereby a person's."


def with_manifests(message: Message, manifests: Sequence[FoundManifest], *, alone: bool) -> Message:
    """The answer in words, with what the manifests say.

    Args:
        alone: whether a manifest alone says that a model wrote the text.
    """
    sentences = list(dict.fromkeys(map(_sentence, manifests)))
    if not alone:
        return message.model_copy(update={"explanation": " ".join([message.explanation, *sentences])})
    explanation = " ".join([*sentences, f"{message.headline}. {message.explanation}"])
    return Message(headline=_HEADLINE, explanation=explanation, caution=_CAUTION)


def _sentence(manifest: FoundManifest) -> str:
    if manifest.status == "does_not_verify":
        return _CHANGED.format(reason=manifest.reason)
    if manifest.status == "not_examined":
        return _UNKNOWN.format(reason=manifest.reason)
    if manifest.status == "not_trusted" or manifest.claims is None:
        return _UNTRUSTED
    claims = manifest.claims
    signer = claims.signer or claims.organization or "a signer without a name"
    what = "the text before it" if manifest.covers == "passage" else "this text"
    made = f"that {claims.software or 'a model'} wrote {what}"
    if claims.digital_source_type != AI_SOURCE_TYPE:
        made = f"where {what} comes from ({claims.digital_source_type or 'no kind of source named'})"
    when = f" ({claims.time})" if claims.time else ""
    return f"A signed manifest (C2PA) of {signer} verifies and says {made}{when}."
