"""What is asked, by whom, and what stands between a question and the work on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.verdict import DocumentFinding
from ttmark.shared.access.scopes import Principal
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detection.detect import DetectionRequest, DetectionResult
from ttmark.shared.watermark.likelihood.reading import Reading

OwnReader = Callable[[DocumentReader, UnlockedKey], Reading | None]
"""What a caller's own language model says of a document's tokens, as the key's profile reads them."""


class DetectionObserver(Protocol):
    """Hears how a question goes."""

    def keys(self, selection: KeySelection) -> None:
        """The keys that are tried."""

    def document(self, result: DetectionResult, finding: DocumentFinding | None) -> None:
        """A document's result and the evidence for it; None where no key had a version to try."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and by whom.

    Attributes:
        identifier: of the request, which the answer names.
        observer: is told every result, with the evidence whether the caller may see it or not.
        asker: who asks, if each asker of a token has a limit of their own.
        own_reader: the caller's own language model; with it there is one step, at the whole rate.
    """

    request: DetectionRequest
    caller: Principal
    identifier: str = ""
    observer: DetectionObserver | None = None
    words: Words = ENGLISH
    asker: str = ""
    own_reader: OwnReader | None = None


class Gate:
    """What stands between a question and the work on it: here nothing, and the work is done at once.

    Attributes:
        owner: in whose turn other processes work for it; None: in the background, however long that takes.
        checks_cost: whether what an examination costs is held to the limit before it is admitted.
        leaves_evenly: whether answers without evidence leave at times that tell nothing.
        began: since when they are waited for (`time.perf_counter`); None: since the work was admitted.
        least_step: seconds; answers leave at multiples of at least that.
    """

    owner: str | None = None
    checks_cost = False
    leaves_evenly = False
    began: float | None = None
    least_step = 0.0

    async def sized(self, request: DetectionRequest) -> DetectionRequest:
        """The request without the documents that their size alone refuses."""
        return request

    async def readable(self, request: DetectionRequest) -> DetectionRequest:
        """The request without the documents that have too many tokens."""
        return request

    async def take(self, _: DetectionRequest) -> None:
        """Takes the documents from what the caller may ask."""

    async def admit(self, mode: str, blocks: int) -> None:
        """Takes the cost of the examination, in hashed blocks, from the tenant's budget."""

    async def read(self, work: Callable[[], Any]) -> Any:
        """Does what takes time in proportion to the texts."""
        return work()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Does a step of what was admitted."""
        return work()
