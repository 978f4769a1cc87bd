"""The one way to ask: its order, and what it refuses where nothing may be waited for."""

import asyncio
from functools import partial
from typing import Any, cast

import pytest

from tests.unit.detect_service.callers import CALLERS
from tests.unit.detect_service.conftest import HUMAN, Service
from ttmark.detect_service.ask import Means, ask, ask_here
from ttmark.detect_service.question import Gate, Question
from ttmark.detect_service.stage import Companion, Reader, VerdictStage
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.http.service_errors import TooManyRequests, Unprocessable
from ttmark.shared.schemas.detection.detect import CombinedRequest, DirectRequest, Document


class Noting(Gate):
    """Notes what it is asked, and refuses one thing."""

    def __init__(self, refuses: str = "") -> None:
        self.asked: list[str] = []
        self._refuses = refuses

    def _note(self, name: str) -> None:
        self.asked.append(name)
        if name == self._refuses:
            raise TooManyRequests("later")

    async def sized(self, request: Any) -> Any:
        self._note("sized")
        return request

    async def readable(self, request: Any) -> Any:
        self._note("readable")
        return request

    async def take(self, _: Any) -> None:
        self._note("take")

    async def admit(self, request: Any, selection: Any) -> None:
        self._note("admit")

    async def run(self, work: Any) -> Any:
        self._note("run")
        return work()


ORDER = ["sized", "readable", "take", "admit", "run"]


def question(text: str = HUMAN) -> Question:
    return Question(CombinedRequest(inputs=[Document(text=text)], keys=["a-one"]), CALLERS["mine"])


@pytest.mark.parametrize("refused", ["", *ORDER[:-1]])
async def test_a_question_passes_its_gate_in_order_and_ends_where_it_is_refused(
    service: Service, refused: str
) -> None:
    gate, means = Noting(refused), Means(service.backend)
    asking = ask(question(), means, gate, lambda response: response.results[0].verdict)
    if refused:
        with pytest.raises(TooManyRequests):
            await asking
        assert gate.asked == ORDER[: ORDER.index(refused) + 1]
    else:
        assert await asking == "not_detected"
        assert gate.asked == ORDER


class Slow:
    """A reader that answers in its own time."""

    state = "up"

    async def read(self, *_: Any) -> dict[str, ByteReading]:
        await asyncio.sleep(0)
        return {}


async def test_asked_at_once_a_question_that_has_to_wait_is_an_error_and_no_answer(service: Service) -> None:
    means = Means(service.backend).with_stages([VerdictStage("reader", reader=cast(Reader, Slow()))])
    assert ask_here(question(), Means(service.backend)).results[0].verdict == "not_detected"
    with pytest.raises(RuntimeError, match="waits for something"):
        ask_here(question(), means)


class Failing(Companion):
    """Fails where it is to protect."""

    async def count(self) -> None:
        raise OSError("nothing is counted")


WAYS = [
    ({"guards": True}, "verdict", {}, HUMAN),
    ({"asked_by": "case"}, "mine", {"case": True}, HUMAN),
    ({"held": ["\u2060"]}, "mine", {}, f"{HUMAN}\u2060"),
]


@pytest.mark.parametrize(("way", "caller", "fields", "text"), WAYS)
async def test_a_stage_that_fails_fails_the_question_and_joins_no_other(
    service, way, caller, fields, text
) -> None:
    asked = Question(CombinedRequest(inputs=[Document(text=text)], **fields), CALLERS[caller])
    means = Means(service.backend).with_stages([VerdictStage("spent", joins=lambda *_: Failing(), **way)])
    with pytest.raises(OSError, match="nothing is counted"):
        ask_here(asked, means)
    assert ask_here(question(), means).results[0].verdict == "not_detected"


@pytest.mark.parametrize(
    ("request_of", "named"),
    [(DirectRequest, "mode"), (partial(CombinedRequest, conversation=True), "conversation")],
)
async def test_what_no_feature_answers_is_refused(service, request_of, named) -> None:
    asked = Question(request_of(inputs=[Document(text=HUMAN)]), CALLERS["mine"])
    with pytest.raises(Unprocessable) as refused:
        ask_here(asked, Means(service.backend))
    assert refused.value.param == named
