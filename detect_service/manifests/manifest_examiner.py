"""Verifies manifests, each in a process that may die, and says what they add to an answer."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass

from pydantic import ValidationError

from ttmark.detect_service.documents.documents_without_verdict import is_fault
from ttmark.detect_service.examination import Finish
from ttmark.detect_service.extraction import ExtractionBusy, ExtractionWorkers, UnreadableFile
from ttmark.detect_service.manifests.manifest_stripping import PartedRequest, PartedText
from ttmark.detect_service.manifests.manifest_words import with_manifests
from ttmark.detect_service.manifests.signed_text import signed_span
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.manifests.wrapper import BrokenWrapper
from ttmark.shared.schemas.detection import Basis, DetectionRequest, DetectionResult
from ttmark.shared.schemas.manifests import FoundManifest, ManifestReport

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

    async def verified(
        self, parts: PartedRequest[DetectionRequest], owner: str | None, words: Words
    ) -> Finish:
        """Verifies the manifests, and gives what adds them to the results.

        Args:
            owner: in whose turn; None: in the background, however long that takes.

        Raises:
            TooManyRequests: too much of the owner's waits to be read.
        """
        found = await (self.examined(parts.texts) if owner is None else self.examine(parts.texts, owner))
        return lambda index, result, _: with_manifests_of(index, result, parts, found, words)

    async def examine(self, texts: dict[int, PartedText], owner: Hashable) -> Found:
        """The manifests of the documents that hold some, by the documents' places.

        Raises:
            TooManyRequests: too much waits to be read.
        """
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
    failure, manifests = parts.failed.get(index), found.get(index)
    if failure is not None:
        raise failure
    if isinstance(manifests, BaseException):
        raise manifests
    if manifests is None:
        return result
    result = parts.placed(index, result)
    if not manifests:
        return result
    alone = result.verdict != "watermarked" and any(one.says_generated for one in manifests)
    message = result.message and with_manifests(result.message, manifests, alone=alone, words=words)
    changed: dict[str, object] = {"metadata": list(manifests), "message": message}
    if alone:
        changed["basis"] = Basis.METADATA
    return result.model_copy(update=changed)
