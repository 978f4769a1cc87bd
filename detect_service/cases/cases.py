"""Signed cases for the results of a request."""

import hashlib
from datetime import UTC, datetime
from importlib.metadata import version

from ttmark.detect_service.options import route_of
from ttmark.shared.cases.case_file import FORMAT, case_file
from ttmark.shared.cases.case_key import CaseKey
from ttmark.shared.schemas.detection import DetectionRequest, DetectionResponse, DetectionResult, Document
from ttmark.shared.watermark.pauses import pause

# Not signed: the scores of all blocks, which are long, and what is none of the result.
_LEFT_OUT = {"evidence", "case"}


def with_cases(
    response: DetectionResponse, request: DetectionRequest, mode: str, key: CaseKey | None
) -> DetectionResponse:
    """The response with a case in each result, where the request asks for them and there is a `key`.

    A case holds what was asked (options, route), what was answered, and hashes in place of texts.
    """
    if key is None or not request.case:
        return response
    shared = {
        "format": FORMAT,
        "signing_key": key.public.name,
        "issued_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "release": version("ttmark"),
        "request_id": response.request_id,
        "route": route_of(mode),
        "options": request.model_dump(mode="json", exclude={"inputs", "case"}),
        "skipped_keys": response.skipped_keys,
    }

    def with_case(result: DetectionResult, document: Document) -> DetectionResult:
        pause()
        case = {
            **shared,
            "document": content_hash(document),
            "result": result.model_dump(mode="json", exclude=_LEFT_OUT),
        }
        return result.model_copy(update={"case": case_file(case, key)})

    results = map(with_case, response.results, request.inputs)
    return response.model_copy(update={"results": list(results)})


def content_hash(document: Document) -> dict[str, str]:
    """SHA-256 of the text in UTF-8, or of the token ids in decimal with commas between them."""
    if document.text is not None:
        return {"content": "text", "sha256": hashlib.sha256(document.text.encode()).hexdigest()}
    listed = ",".join(map(str, document.token_ids or ()))
    return {"content": "token_ids", "sha256": hashlib.sha256(listed.encode()).hexdigest()}
