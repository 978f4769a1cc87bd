"""Verifies manifests, each in a process that may die, and says what they add to an answer."""

import asyncio
import base64
import binascii
import hashlib
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import ValidationError

from ttmark.detect_service.documents.documents_without_verdict import is_fault
from ttmark.detect_service.features.files.text.extraction import UnreadableFile
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionBusy, ExtractionWorkers
from ttmark.detect_service.features.manifests.manifest_stripping import PartedText
from ttmark.shared.detection_words import spoken
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.manifests.wrapper import BrokenWrapper
from ttmark.shared.schemas.detection.detect import Message
from ttmark.shared.schemas.manifests import AI_SOURCE_TYPE, Binding, FoundManifest, ManifestReport


def with_manifests(
    message: Message, manifests: Sequence[FoundManifest], *, alone: bool, words: Words = ENGLISH
) -> Message:
    """The answer with what the manifests say; `alone`: one of them alone says that a model wrote the text."""
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


_HASHES = {"sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


class SignedSpan(NamedTuple):
    """The signed text in what stands before its manifest.

    Attributes:
        whole: whether all but white space is signed.
        start, end: characters of the text before the manifest; None where its spelling differs from the
            signed one (NFC, line ends), so that places cannot be told.
    """

    whole: bool
    start: int | None
    end: int | None


def signed_span(before: str, after: str, wrapper_bytes: int, binding: Binding) -> SignedSpan | None:
    """What the binding's hash covers; None: neither the text nor its end before the manifest.

    The standard hashes the whole asset. A passage that was pasted into a longer text ends where its manifest
    begins and is as long as the binding says, so that it is known as well.

    Args:
        wrapper_bytes: size of the wrapper in UTF-8; another than the signed one was changed.
    """
    if binding.alg not in _HASHES or binding.length != wrapper_bytes:
        return None
    try:
        expected = base64.b64decode(binding.hash, validate=True)
    except binascii.Error:
        return None

    def matches(*parts: bytes) -> bool:
        digest = _HASHES[binding.alg]()
        for part in parts:
            digest.update(part)
        return digest.digest() == expected

    composed = unicodedata.normalize("NFC", before)
    behind = unicodedata.normalize("NFC", after).encode()
    for text in dict.fromkeys((composed, composed.replace("\r\n", "\n"))):
        data = text.encode()
        if len(data) < binding.start:
            continue
        if len(data) == binding.start and matches(data, behind):
            return SignedSpan(whole=True, start=0, end=len(before))
        signed = data[len(data) - binding.start :]
        if signed and matches(signed):
            left_out = text[: len(text) - len(signed.decode(errors="ignore"))]
            whole = not left_out.strip() and not after.strip()
            placed = text == before
            return SignedSpan(whole, len(left_out) if placed else None, len(before) if placed else None)
    return None


Found = dict[int, list[FoundManifest] | BaseException]
"""By document; an error of ours is raised where the document is answered."""
# The standard allows one in a text; a collection of answers has more.
MOST_OF_A_DOCUMENT = 4
_WAIT_SECONDS = 1.0
MOST_OF_A_REQUEST = 32
_TOO_MANY = "more manifests than are looked at"
NO_LIBRARY = "this service verifies no manifests: its extra `provenance` is not installed"


@dataclass(frozen=True, slots=True)
class ManifestExaminer:
    """Sets manifests apart and says what they are worth.

    Attributes:
        workers: read them; None: they are found and not examined.
        anchors: certificates in PEM that are trusted; None: none is.
        why_not: what is said of them where nothing reads them.
    """

    workers: ExtractionWorkers | None
    anchors: str | None = None
    why_not: str = NO_LIBRARY

    async def examine(self, texts: dict[int, PartedText], owner: Hashable) -> Found:
        """Manifests of documents that hold some, by their places. Raises TooManyRequests: too much waits."""
        found: Found = {}
        left = MOST_OF_A_REQUEST
        for index, text in texts.items():
            looked_at = min(left, MOST_OF_A_DOCUMENT, len(text.wrappers))
            left -= looked_at
            try:
                manifests = [await self._one(text, number, owner) for number in range(looked_at)]
            except BaseException as error:
                if not is_fault(error):
                    raise
                found[index] = error
                continue
            if looked_at < len(text.wrappers):
                manifests.append(_not_examined(_TOO_MANY))
            found[index] = manifests
        return found

    async def examined(self, texts: dict[int, PartedText]) -> Found:
        """The same for work in the background, which waits its turn."""
        while True:
            try:
                return await self.examine(texts, None)
            except TooManyRequests:
                await asyncio.sleep(_WAIT_SECONDS)

    async def _one(self, text: PartedText, number: int, owner: Hashable) -> FoundManifest:
        try:
            manifest = text.wrappers[number].manifest()
            if self.workers is None:
                return _not_examined(self.why_not)
            answer = await self.workers.read_manifest(manifest, self.anchors, owner)
            report = ManifestReport.model_validate_json(answer)
        except BrokenWrapper as error:
            return FoundManifest(status="does_not_verify", reason=str(error))
        except UnreadableFile as error:
            return _not_examined(str(error))
        except ExtractionBusy as error:
            message = "Too many files and manifests are waiting to be read."
            raise TooManyRequests(message, retry_after=error.retry_after) from error
        except ValidationError:
            report = ManifestReport(fault="manifest.unreadable")
        return await asyncio.to_thread(_judged, text, number, report)


def _not_examined(reason: str) -> FoundManifest:
    return FoundManifest(status="not_examined", reason=reason)


def _judged(text: PartedText, number: int, report: ManifestReport) -> FoundManifest:
    if report.fault is not None or report.binding is None:
        return FoundManifest(status="does_not_verify", reason=report.fault or "claim.hardBindings.missing")
    wrapper = text.wrappers[number]
    before = text.seen_before(number)
    span = signed_span(before, text.seen_after(number), wrapper.utf8_bytes, report.binding)
    if span is None:
        return FoundManifest(status="does_not_verify", reason="assertion.dataHash.mismatch")
    passage = not span.whole and span.start is not None and span.end is not None
    start, end = text.original_span(span.start or 0, span.end or 0) if passage else (None, None)
    return FoundManifest(
        status="valid" if report.trusted else "not_trusted",
        reason=None if report.trusted else "signingCredential.untrusted",
        covers="whole" if span.whole else "passage",
        start_char=start,
        end_char=end,
        claims=report.claims,
    )
