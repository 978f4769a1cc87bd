"""Answers with a signed manifest, asked for and taken apart."""

from typing import Any

from tests.harness.certificates import Credential
from ttmark.detect_service.features.manifests.manifest_examiner import signed_span
from ttmark.shared.manifests.report import manifest_report
from ttmark.shared.manifests.wrapper import wrappers

ASKED: dict[str, Any] = {"seed": 1, "tokens": 40, "watermark": {"manifest": True}}


NOT_ASKED: dict[str, Any] = {"watermark": None}


def post(service: Any, route: str, **change: Any) -> Any:
    return service.post(route, **ASKED | change)


def streamed(service: Any, route: str, **change: Any) -> tuple[list[str], dict[str, Any]]:
    """The pieces of text of a stream, and the last event's watermark block."""
    events, pieces = service.events(route, **ASKED | change), []
    for event in events:
        if event.get("type") == "response.output_text.delta":
            pieces.append(event["delta"])
        choices = event.get("choices", ())
        pieces += [each.get("text") or each.get("delta", {}).get("content") or "" for each in choices]
    return pieces, events[-1]["watermark"]


def assert_signed(text: str, authority: Credential) -> None:
    [wrapper] = wrappers(text)
    assert wrapper.end == len(text)
    report = manifest_report(wrapper.manifest(), authority.root.decode())
    assert (report.fault, report.trusted) == (None, True)
    assert report.binding is not None
    assert report.claims is not None
    assert report.claims.software == "tiny"
    span = signed_span(text[: wrapper.start], "", wrapper.utf8_bytes, report.binding)
    assert span is not None
    assert span.end == wrapper.start
