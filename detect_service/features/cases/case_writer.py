"""Writes cases: signed, with the result of a document, and as an html page that anybody can print."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from typing import Any

from ttmark.detect_service.examination import Examination
from ttmark.detect_service.stage import Companion, VerdictStage
from ttmark.shared.detection_words import about_words, is_sure
from ttmark.shared.schemas.detection.detect import DetectionRequest, DetectionResult, Document
from ttmark.shared.schemas.generation.origin import Origin
from ttmark.shared.signed_files.signed_file import (
    CASE_FORMAT,
    Case,
    CaseKey,
    case_file,
    chosen_by_sender,
    definitions,
    whole_page,
)
from ttmark.shared.watermark.interruption import pause

# Not signed: the scores of all blocks, which are long, what is none of the result, and the sender's name.
_LEFT_OUT = {"evidence", "case", "id"}


def stage_of(key: CaseKey) -> VerdictStage:
    """Cases are signed with the key, for questions that ask for them."""
    return VerdictStage(
        "cases",
        joins=lambda question, sent, _: Cases(sent, key, question.identifier),
        asked_by="case",
    )


class Cases(Companion):
    """Adds a case to each result of a request, signed with `key`.

    A case holds what was asked (options, route), what was answered, and hashes in place of texts.
    """

    examination: Examination

    def __init__(self, request: DetectionRequest, key: CaseKey, request_id: str) -> None:
        self._request = request
        self._key = key
        self._shared = {
            "format": CASE_FORMAT,
            "signing_key": key.public.name,
            "issued_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "release": version("ttmark"),
            "request_id": request_id,
            "route": request.path,
            "options": request.model_dump(mode="json", exclude={"inputs", "case", *Origin.model_fields}),
        }

    def seal(self, index: int, result: DetectionResult) -> DetectionResult:
        """The result of document number `index` with its case, which says what else recomputes it."""
        pause()
        case: dict[str, object] = {
            **self._shared,
            "skipped_keys": list(self.examination.selection.skipped),
            "document": content_hash(self._request.inputs[index]),
            "result": result.model_dump(mode="json", exclude=_LEFT_OUT),
        }
        for companion in self.examination.companions:
            case |= companion.record(index)
        return result.model_copy(update={"case": case_file(case, self._key)})


def content_hash(document: Document) -> dict[str, str]:
    """SHA-256 of the text in UTF-8, or of the token ids in decimal with commas between them."""
    if document.text is not None:
        return {"content": "text", "sha256": hashlib.sha256(document.text.encode()).hexdigest()}
    listed = ",".join(map(str, document.token_ids or ()))
    return {"content": "token_ids", "sha256": hashlib.sha256(listed.encode()).hexdigest()}


def page_around(case: Case, text: str | None) -> tuple[str, str]:
    """The html before and behind the case itself; `text` is shown with its passages where it is given."""
    result = case["result"]
    words = result["message"]
    language = escape(words.get("language") or "en")
    parts = [
        f'<div lang="{language}"><h1>{escape(words["headline"])}</h1>',
        *(f"<p>{escape(words[name])}</p>" for name in ("explanation", "caution")),
        "</div>",
        definitions(dict(_facts(case))),
    ]
    if text is not None:
        parts += ["<h2>The text</h2>", f"<pre>{_marked(text, result.get('segments') or [])}</pre>"]
    parts.append(
        "<h2>Is this page genuine?</h2>"
        "<p>Anybody can write such a page. <code>ttmark case verify</code> says whether the service signed "
        "this one; a changed page is refused.</p>"
    )
    return whole_page("Watermark case", parts)


def _facts(case: Case) -> Iterator[tuple[str, str]]:
    result, options, document = case["result"], case["options"], case["document"]
    if result.get("key"):
        yield "Key", _key(result["key"])
    for number, segment in enumerate(result.get("segments") or [], 1):
        where = f"characters {segment['start_char']} to {segment['end_char']}"
        note = (
            "" if is_sure(segment["log10_e_value"], options["fpr"]) else ", by itself less sure than the rate"
        )
        yield f"Passage {number}", f"{where}, {_key(segment['key'])}{note}"
    if result.get("voice"):
        yield "Whose words", result["voice"]
    if result.get("p_value") is not None:
        yield "p-value, corrected", f"{result['p_value']:.3g}"
    if result.get("reading"):
        yield "Reading that counts", result["reading"].replace("_", " ")
    yield "Held to", f"a false alarm rate of {options['fpr']:g} per text"
    yield "Checked by", case["route"]
    yield from chosen_by_sender(case).items()
    if case["skipped_keys"]:
        yield "Keys not tried", ", ".join(case["skipped_keys"])
    yield "Length", f"about {about_words(result['tokens'])}"
    yield "Checked at", case["issued_at"]
    yield "Release", f"ttmark {case['release']}"
    yield "Signing key", case["signing_key"]
    yield f"SHA-256 of the {document['content'].replace('_', ' ')}", document["sha256"]


def _key(key: dict[str, Any]) -> str:
    name = f"{key['key_id']}, version {key['version']}"
    if key.get("payload") is not None:
        return f"{name}, payload {key['payload']}"
    return name if key.get("pool_key") is None else f"{name}, pool key {key['pool_key']}"


def _marked(text: str, segments: list[dict[str, Any]]) -> str:
    parts, at = [], 0
    for segment in segments:
        start, end = segment["start_char"], segment["end_char"]
        if start is None or end is None:
            continue
        parts.append(f"{escape(text[at:start])}<mark>{escape(text[start:end])}</mark>")
        at = end
    return "".join([*parts, escape(text[at:])])
