"""What manifests add to an answer in words."""

from collections.abc import Sequence

from ttmark.shared.detection_words import spoken
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detection import Message
from ttmark.shared.schemas.manifests import AI_SOURCE_TYPE, FoundManifest


def with_manifests(
    message: Message, manifests: Sequence[FoundManifest], *, alone: bool, words: Words = ENGLISH
) -> Message:
    """The answer in words, with what the manifests say.

    Args:
        alone: whether a manifest alone says that a model wrote the text.
        words: of the language of `message`.
    """
    sentences = list(dict.fromkeys(_sentence(manifest, words) for manifest in manifests))
    if not alone:
        return message.model_copy(update={"explanation": " ".join([message.explanation, *sentences])})
    explanation = " ".join([*sentences, f"{message.headline}. {message.explanation}"])
    return spoken(words, "manifest", explanation=explanation)


def _sentence(manifest: FoundManifest, words: Words) -> str:
    if manifest.status == "does_not_verify":
        return words.say("manifest.changed", reason=manifest.reason)
    if manifest.status == "not_examined":
        return words.say("manifest.not_examined", reason=manifest.reason)
    if manifest.status == "not_trusted" or manifest.claims is None:
        return words.say("manifest.untrusted")
    claims = manifest.claims
    what = "passage" if manifest.covers == "passage" else "text"
    values = {
        "signer": claims.signer or claims.organization or words.say("manifest.no_signer"),
        "when": f" ({claims.time})" if claims.time else "",
    }
    if claims.digital_source_type == AI_SOURCE_TYPE:
        software = claims.software or words.say("manifest.some_model")
        return words.say(f"manifest.wrote_{what}", software=software, **values)
    source = claims.digital_source_type or words.say("manifest.no_source")
    return words.say(f"manifest.source_{what}", source=source, **values)
