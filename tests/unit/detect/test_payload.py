"""A payload is read back from the text that carries it; what a service drew is never given for one."""

import json

import numpy as np
import pytest

from tests.unit.detect.conftest import Service
from tests.unit.detect.held_keys import under
from tests.unit.detect.simulated_texts import written
from tests.unit.detect.test_pool import MODES
from ttmark.detect_service.bulk.examiner import Examiner
from ttmark.detect_service.bulk.rows import InputRow
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.paper_detectors import direct
from ttmark.shared.watermark import Watermark


def marked(service: Service, number: int, tokens: int = 300, key_id: str = "e-payload") -> str:
    return service.marked(key_id, tokens, number=number)


@pytest.mark.parametrize(("mode", "options"), MODES)
@pytest.mark.parametrize("number", [0, 11])
async def test_the_payload_is_read_in_every_mode(service, mode, options, number):
    result = await service.one(mode, marked(service, number), "payload", **options)
    found = (result.verdict, result.key.key_id, result.key.payload, result.key.pool_key)
    assert found == ("watermarked", "e-payload", number, number)
    assert {segment.key.payload for segment in result.segments or ()} <= {number}


@pytest.mark.parametrize(("mode", "options"), MODES)
async def test_a_number_that_was_drawn_is_no_payload(service, mode, options):
    result = await service.one(mode, marked(service, 6, key_id="e-pool"), "payload", **options)
    assert (result.key.key_id, result.key.pool_key, result.key.payload) == ("e-pool", 6, None)
    assert {segment.key.payload for segment in result.segments or ()} <= {None}


@pytest.mark.parametrize(("mode", "options"), MODES)
async def test_a_text_of_several_messages_has_none_and_its_passages_have_theirs(service, mode, options):
    text = "".join(marked(service, number, 260) for number in (2, 9))
    result = await service.one(mode, text, "payload", **options)
    assert result.verdict == "watermarked"
    assert (result.pool_keys_found, result.key.payload) == (2, None)
    if result.segments is not None:
        assert [segment.key.payload for segment in result.segments] == [2, 9]


async def test_a_caller_without_the_scope_learns_no_payload(service):
    answers = []
    for number in range(4):
        response = await service.direct(
            {"inputs": [{"text": marked(service, number)}], "normalize": False}, "e"
        )
        (result,) = response.json()["results"]
        assert result["verdict"] == "watermarked"
        del result["normalization"]  # it counts the text's doubled spaces
        answers.append(str(result))
    assert len(set(answers)) == 1
    assert "'key': None" in answers[0]


async def test_keys_are_listed_with_what_they_take_and_bulk_rows_have_the_payload(service):
    listed = (await service.client.get("/v1/keys", headers=service.headers("payload"))).json()["keys"]
    assert {key["key_id"]: (key["pool"], key["payloads"]) for key in listed} == {
        "e-payload": (16, True),
        "e-pool": (16, False),
    }
    examiner = Examiner(service.backend, "e", DetectionOptions(mode="localized"))
    for key_id, payload in (("e-payload", 8), ("e-pool", None)):
        row = InputRow(1, json.dumps({"text": marked(service, 8, key_id=key_id)}).encode())
        (output,) = examiner.output_rows([row])
        assert (output["key_id"], output["pool_key"], output["payload"]) == (key_id, 8, payload)
        assert [segment["payload"] for segment in output["segments"]] == [payload]


def read_back(pool_size: int, texts: int, blocks: int, log10_fpr: float) -> tuple[int, int, int]:
    """Of texts with a payload each: how many give it back, give another back, or fire on several keys."""
    generator = np.random.default_rng(pool_size)
    watermark = Watermark("synthid", 2)
    pool = [generator.bytes(16) for _ in range(pool_size)]
    sent = generator.integers(pool_size, size=texts).tolist()
    documents = written(watermark, [pool[number] for number in sent], blocks, choices=8)
    tried = [under(direct(0, log10_fpr), watermark, pool, tokens) for tokens in documents]
    read = [one.pool_key if len(one.fired) == 1 else None for one in tried]
    right = sum(one == number for one, number in zip(read, sent, strict=True))
    several = sum(len(one.fired) > 1 for one in tried)
    return right, texts - read.count(None) - right, several


def test_a_payload_that_is_read_is_another_than_was_sent_no_more_often_than_the_rate_allows():
    # Short texts at a coarse rate, so that many are found and many are not.
    texts, rate = 800, 0.05
    right, wrong, several = read_back(16, texts, 6, np.log10(rate))
    assert 0.2 < right / texts < 0.95
    # Without the correction for the pool half of the texts would fire on a key that did not make them.
    expected = texts * rate
    assert wrong + several <= expected + 4 * np.sqrt(expected)
    assert wrong + several > 0


def test_a_text_of_some_length_gives_its_payload_back():
    texts = 100
    right, wrong, _ = read_back(256, texts, 60, -5.0)
    assert right >= texts - 1
    assert wrong == 0


@pytest.mark.slow
@pytest.mark.parametrize("pool_size", [16, 256, 4096])
@pytest.mark.parametrize(("blocks", "log10_fpr"), [(6, -2.0), (12, -2.0), (12, -5.0), (25, -5.0)])
def test_payloads_are_read_back(pool_size, blocks, log10_fpr):
    texts = 1_000 if pool_size == 4096 else 10_000
    right, wrong, several = read_back(pool_size, texts, blocks, log10_fpr)
    print(f"{pool_size} keys, {blocks} blocks, 1e{log10_fpr:g}: {right} + {wrong} + {several} of {texts}")
    expected = texts * 10**log10_fpr
    assert wrong + several <= expected + 4 * np.sqrt(expected) + 1
