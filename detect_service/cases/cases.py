"""Signed cases for the results of a request."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from ttmark.detect_service.options import route_of
from ttmark.shared.cases.case_key import CaseKey
from ttmark.shared.cases.signed_file import CASE_FORMAT, case_file
from ttmark.shared.schemas.detection import DetectionRequest, DetectionResult, Document
from ttmark.shared.watermark.pauses import pause

# Not signed: the scores of all blocks, which are long, and what is none of the result.
_LEFT_OUT = {"evidence", "case"}


class Cases:
    """Adds a case to each result of a request, where it asks for them and there is a `key`.

    A case holds what was asked (options, route), what was answered, and hashes in place of texts.
    """

    def __init__(self, request: DetectionRequest, mode: str, key: CaseKey | None, request_id: str) -> None:
        self._request = request
        self._key = key if request.case else None
        if self._key is None:
            return
        self._shared = {
            "format": CASE_FORMAT,
            "signing_key": self._key.public.name,
            "issued_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "release": version("ttmark"),
            "request_id": request_id,
            "route": route_of(mode),
            "options": request.model_dump(mode="json", exclude={"inputs", "case"}),
        }

    def added(
        self,
        index: int,
        result: DetectionResult,
        skipped_keys: Sequence[str],
        spent: dict[str, object] | None = None,
    ) -> DetectionResult:
        """The result of document number `index` with its case.

        Args:
            spent: which rows were drawn, and from which seed, so that the result can be recomputed.
        """
        if self._key is None:
            return result
        pause()
        case = {
            **self._shared,
            "skipped_keys": list(skipped_keys),
            "document": content_hash(self._request.inputs[index]),
            "result": result.model_dump(mode="json", exclude=_LEFT_OUT),
        }
        if spent is not None:
            case["spent"] = spent
        return result.model_copy(update={"case": case_file(case, self._key)})


def content_hash(document: Document) -> dict[str, str]:
    """SHA-256 of the text in UTF-8, or of the token ids in decimal with commas between them."""
    if document.text is not None:
        return {"content": "text", "sha256": hashlib.sha256(document.text.encode()).hexdigest()}
    listed = ",".join(map(str, document.token_ids or ()))
    return {"content": "token_ids", "sha256": hashlib.sha256(listed.encode()).hexdigest()}
