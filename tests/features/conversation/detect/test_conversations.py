"""Messages of a conversation as one question to `POST /v1/detect`."""

import json
import math
from typing import Any, cast

import numpy as np
import pytest

from tests.features.spent.detect.oracle import KEY, RULE, oracle
from tests.harness.golden import GOLDEN, approximately
from tests.harness.golden_likelihood import conversation_vectors
from tests.harness.said_by import SaidBy, SilentReader
from tests.unit.detect_service.callers import CALLERS
from tests.unit.detect_service.conftest import HUMAN
from tests.unit.detect_service.test_languages import OTHERS, detected, facts, results
from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.features.conversation.conversation_words import conversation_message
from ttmark.detect_service.question import Question
from ttmark.detect_service.stage import Reader, VerdictStage
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.languages.words import words_of
from ttmark.shared.schemas.detection.detect import (
    CombinedRequest,
    CombinedResult,
    ConversationMessage,
    Document,
)


async def asked(service: Any, texts: list[str], token: str = "pool", **more: Any) -> CombinedResult:
    body = {"inputs": [{"text": text} for text in texts], "conversation": True, **more}
    response = await service.post("/v1/detect", body, token)
    assert response.status_code == 200, response.text
    (result,) = response.json()["results"]
    return CombinedResult.model_validate(result)


def messages(service: Any, numbers: list[int], tokens: int, choices: int = 64) -> list[str]:
    """Answers of so many tokens, with these keys of the pool of `d-pool`."""
    return [
        service.marked("d-pool", tokens, number=number, seed=seed, choices=choices)
        for seed, number in enumerate(numbers)
    ]


async def test_short_answers_with_several_keys_of_a_pool_are_found_together_and_none_alone(service):
    texts = messages(service, [3, 9, 0, 15, 3], 50, choices=4)
    body = {"inputs": [{"text": text} for text in texts], "fpr": 1e-7}
    alone = await service.results("combined", body, "pool")
    assert "watermarked" not in {one.verdict for one in alone}
    found = await asked(service, texts, fpr=1e-7)
    assert (found.id, found.verdict) == ("conversation", "watermarked")
    assert [one.id for one in found.messages] == ["0", "1", "2", "3", "4"]
    speaking = {index: one.key.pool_key for index, one in enumerate(found.messages) if one.key is not None}
    assert len(speaking) >= 3
    assert all(number == [3, 9, 0, 15, 3][index] for index, number in speaking.items())
    assert (found.key.key_id, found.key.pool_key) == ("d-pool", None)
    assert found.log10_e == pytest.approx(found.messages[-1].log10_e)
    assert found.log10_p == pytest.approx(-max(one.log10_e or 0.0 for one in found.messages))
    assert found.hypotheses == 3 * 16
    assert "Taken together" in found.message.explanation


async def test_one_may_stop_at_any_message_and_what_follows_takes_nothing_back(service: Any) -> None:
    texts = [*messages(service, [3, 9, 0, 15, 3], 30), HUMAN, HUMAN[::-1], "fine, thank you for the help"]
    whole = await asked(service, texts)
    grown = [one.log10_e for one in whole.messages]
    assert grown[-1] < max(grown)  # people's words speak against it
    for count in (1, 3, 5, len(texts)):
        part = await asked(service, texts[:count])
        assert [one.log10_e for one in part.messages] == pytest.approx(grown[:count])
        assert part.log10_p == pytest.approx(-max(0.0, *grown[:count]))
    assert whole.verdict == "watermarked"


async def test_what_is_said_again_counts_once(service: Any) -> None:
    (text,) = messages(service, [3], 20)
    once, again = await asked(service, [text]), await asked(service, [text, f"{text}", text])
    assert [one.log10_e for one in again.messages] == pytest.approx([once.log10_e] * 3, abs=0.1)


async def test_without_evidence_there_is_a_verdict_of_the_whole_and_nothing_else(service: Any) -> None:
    texts = [service.marked("a-one", tokens=40, seed=seed) for seed in range(3)]
    result = await asked(service, texts, "verdict")
    assert result.verdict == "watermarked"
    assert (result.log10_p, result.log10_e, result.key, result.reader, result.weak) == (None,) * 5
    assert {(one.log10_e, one.key, one.error) for one in result.messages} == {(None, None, None)}
    assert "a-one" not in result.message.model_dump_json()


async def test_a_message_that_is_left_out_leaves_no_verdict_or_a_finding(service: Any) -> None:
    over = "ab " * 5_000
    missing = await asked(service, [HUMAN, over, HUMAN[::-1]], "full")
    assert missing.verdict == "not_examined"
    assert [one.error is None for one in missing.messages] == [True, False, True]
    texts = [service.marked("a-one", tokens=60, seed=seed) for seed in range(2)]
    found = await asked(service, [texts[0], over, texts[1]], "full")
    assert found.verdict == "watermarked"


async def test_few_words_are_too_short_to_tell(service: Any) -> None:
    assert (await asked(service, ["yes", "no", "fine"], "full")).verdict == "too_short"
    assert (await asked(service, ["a"] * 256, "pool")).verdict == "too_short"
    empty = await asked(service, [""], "full")
    assert (empty.verdict, empty.tokens) == ("too_short", 0)
    assert "holds no words" in empty.message.explanation


async def test_a_message_is_spent_however_often_it_comes_in_another_conversation(service: Any) -> None:
    """Otherwise an attacker would weigh what stands beside it, question after question."""
    text = service.marked(KEY, 60)
    async with oracle(service) as attacker:

        async def verdict(beside: str) -> str:
            body = {"inputs": [{"text": text}, {"text": beside}], "keys": [KEY], "conversation": True}
            response = await attacker.post(body, "combined")
            assert response.status_code == 200, response.text
            return str(response.json()["results"][0]["verdict"])

        seen = [await verdict(f"{number} {HUMAN[number:]}") for number in range(RULE.limit + 3)]
        assert seen == ["watermarked"] * RULE.limit + ["no_verdict"] * 3
        assert await verdict("0 " + HUMAN) == "watermarked"  # the first question again


async def test_spent_rows_say_nothing_of_each_message(service: Any) -> None:
    """What is left of a message counts, and only that."""
    texts = [service.marked(KEY, 60, seed=seed) for seed in range(2)]
    async with oracle(service) as attacker:
        for number in range(RULE.limit):
            body = {"inputs": [{"text": f"{texts[0]} {number}"}], "keys": [KEY]}
            await attacker.post(body, "combined")
        body = {"inputs": [{"text": text} for text in texts], "keys": [KEY], "conversation": True}
        response = await attacker.post(body, "combined")
        assert response.json()["results"][0]["verdict"] == "watermarked"  # by the second
        body["inputs"] = [{"text": texts[0]}, {"text": HUMAN}]
        (result,) = (await attacker.post(body, "combined")).json()["results"]
        assert (result["verdict"], result["error"]["code"]) == ("no_verdict", "evidence_spent")


def read_by(service: Any, texts: list[str], readings: bool, **more: Any) -> tuple[CombinedResult, list[str]]:
    request = CombinedRequest(
        inputs=[Document(text=text) for text in texts], keys=["a-one"], conversation=True, **more
    )

    def evenly(text: str) -> ByteReading:
        count = len(text.encode())
        return ByteReading(np.arange(1, count + 1), np.full(count, math.log(1 / 26)))

    reader = (SaidBy if readings else SilentReader)(evenly)
    means = means_of(service.backend).with_stages([VerdictStage("reader", reader=cast(Reader, reader))])
    (result,) = ask_here(Question(request, CALLERS["mine"]), means).results
    assert isinstance(result, CombinedResult)
    return result, reader.asked


async def test_a_conversation_is_read_where_that_may_change_the_verdict(service: Any) -> None:
    strong = [service.marked("a-one", tokens=80, seed=seed) for seed in range(3)]
    weak = [service.marked("a-one", tokens=12, seed=seed) for seed in range(2)]
    for texts, state in ((strong, "not_needed"), ([HUMAN, HUMAN[::-1]], "not_needed"), (weak, "read")):
        result, unread = read_by(service, texts, readings=True)
        assert (result.reader, bool(unread)) == (state, state == "read")
    down, _ = read_by(service, weak, readings=False)
    read, unread = read_by(service, weak, readings=True)
    assert unread == weak
    assert down.reader == "down"
    assert read.log10_e > down.log10_e + 0.5
    always, unread = read_by(service, [HUMAN], readings=True, reader="always")
    assert (always.reader, unread) == ("read", [HUMAN])
    assert read_by(service, weak, readings=True, reader="never")[0].reader == "none"


def test_golden_answers_about_conversations_are_reproduced() -> None:
    expected = json.loads((GOLDEN / "likelihood-4.json").read_text())["conversations"]
    assert approximately(expected) == json.loads(json.dumps(conversation_vectors()))


@pytest.mark.parametrize("language", OTHERS)
async def test_each_language_tells_of_a_conversation_what_english_does(service: Any, language: str) -> None:
    words = words_of(language)
    for result in results():
        if isinstance(result, CombinedResult):
            several = [ConversationMessage(id="m", tokens=3)] * 12
            talk = result.model_copy(update={"asked_before": None, "messages": several})
            together = conversation_message(talk, 1e-5, words)
            assert facts(together) == facts(conversation_message(talk, 1e-5))
    short = {"inputs": [{"text": "a b"}, {"text": "c d"}], "conversation": True}
    [together] = await detected(service, short, language)
    assert together["message"]["headline"] == words.say("short.headline")
