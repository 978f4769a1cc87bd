"""A document that ends in an error, where evidence is counted."""

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from tests.unit.detect_service.test_failing_documents import (
    FAILING,
    Break,
    Desk,
    desk_of,
    place,  # noqa: F401
    test_its_neighbours_are_answered_as_if_it_were_not_there,  # noqa: F401
)
from ttmark.detect_service.features.spent.spent_evidence import AnswerLedger
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.counting_filter import AnswerRule


@pytest.fixture
async def desk(service) -> AsyncIterator[Desk]:
    ledger = AnswerLedger(LocalCounters(), key=b"k", rule=AnswerRule(250, 60.0))
    async with desk_of(service, ledger=ledger) as desk:
        yield desk


async def test_a_document_whose_rows_cannot_be_counted_is_not_scored(desk: Desk, break_at: Break) -> None:
    break_at("detect_service.documents.text_reader:TextReader.token_ids")
    with capture_logs() as logs:
        response = await desk.ask([FAILING, "A text that can be counted."], token="verdict")
    verdicts = [result["verdict"] for result in response.json()["results"]]
    assert verdicts == ["not_examined", "too_short"]
    assert {entry["error"] for entry in logs if entry["event"] == "document_failed"} == {"ValueError"}
