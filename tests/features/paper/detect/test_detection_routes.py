"""The paper's three detectors through the whole service."""

import random
from dataclasses import replace
from string import ascii_letters
from typing import Any

import numpy as np
import pytest

from tests.unit.detect_service import test_work
from tests.unit.detect_service.conftest import HUMAN, Service
from tests.unit.detect_service.test_bad_input import ONE, assert_problem
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.cost import request_cost
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.options import DetectionOptions, Mode
from ttmark.shared.schemas.detection.detect import Document


async def test_a_marked_text_is_attributed_to_its_key_among_all_keys_and_to_no_other(service) -> None:
    text = service.marked("a-two")
    result = await service.one("direct", text, keys=["a-one", "a-two"], normalize=False)
    assert (result.verdict, result.key.key_id, result.key.version) == ("watermarked", "a-two", 1)
    assert (result.key.pool_key, result.pool_keys_found) == (None, None)
    assert result.p_value <= 1e-5
    assert result.hypotheses == 4  # two keys, two phases of blocks of two
    other = await service.one("direct", text, keys=["a-one"], normalize=False)
    assert (other.verdict, other.key) == ("not_detected", None)


async def test_token_ids_give_the_same_answer_as_their_text(service) -> None:
    text = service.marked("a-one")
    both = [{"id": "d", "text": text}, {"id": "d", "token_ids": service.tokenizer.encode(text)}]
    from_text, from_ids = await service.results("direct", {"inputs": both, "keys": ["a-one"], "phase": 0})
    assert from_text.normalization is not None
    assert from_text.hypotheses == 3 * from_ids.hypotheses
    alike = {"normalization": None, "hypotheses": from_ids.hypotheses}
    assert from_ids == from_text.model_copy(update=alike)


async def test_without_a_phase_text_is_read_with_any_and_token_ids_with_0(service) -> None:
    text = service.marked("a-one", tokens=400)[1:]
    inputs = [{"text": text}, {"token_ids": service.tokenizer.encode(text)}]
    found, missed = ("watermarked", 2), ("not_detected", 1)  # a text counts them for each reading
    for options, expected in (
        ({}, [found, missed]),
        ({"phase": None}, [found, missed]),
        ({"phase": 0}, [missed, missed]),
        ({"phase": "any"}, [found, found]),
    ):
        answers = await service.results("direct", {"inputs": inputs, "keys": ["a-one"], **options})
        counted = [(one.verdict, one.hypotheses // (3 if one.normalization else 1)) for one in answers]
        assert counted == expected


async def test_a_text_is_long_enough_when_one_phase_is_whichever_scores_best(service) -> None:
    options = {"keys": ["a-one"], "fpr": 1e-30}
    short = await service.one("direct", HUMAN[:8], **options)
    letters = random.Random(4)
    texts = ["".join(letters.choices(ascii_letters, k=short.tokens_typical)) for _ in range(60)]
    answers = await service.results("direct", {"inputs": [{"text": text} for text in texts], **options})
    assert {answer.verdict for answer in answers} == {"not_detected"}


async def test_block_evidence_names_the_characters_of_each_block(service) -> None:
    text = service.marked("a-one", tokens=60)
    result = await service.one("direct", text, keys=["a-one"], evidence="blocks")
    assert len(result.evidence) == result.scored_blocks
    first = result.evidence[0]
    assert (first.start_token, first.end_token) == (4, 6)
    assert text[first.start_char : first.end_char] == text[4:6]


FPR = 1e-2


async def test_the_evidence_is_scored_with_the_beta_that_was_asked_for(service) -> None:
    text = service.marked("a-one", tokens=200)
    edited = text[:101] + "q" + text[101:-1]
    body = {"inputs": [{"text": edited}], "keys": ["a-one"], "fpr": FPR, "evidence": "blocks"}
    (usual,) = await service.results("aligned", body)
    (dear,) = await service.results("aligned", {**body, "beta": 100})
    # A skipped token pays for itself at the usual price, never at this one.
    assert {block.start_token % 2 for block in usual.evidence} == {0, 1}
    assert len({block.start_token % 2 for block in dear.evidence}) == 1


@pytest.fixture
def human() -> str:
    """Letters that no key drew."""
    generator = np.random.default_rng(11)
    return "".join(generator.choice(list("abcdefghijklmnopqrstuvwxyz .,"), size=2_000))


def marks(segment, start: int, end: int) -> bool:
    """Whether a segment covers 9 tenths of the characters start..end, and more of them than of others."""
    common = max(0, min(segment.end_char, end) - max(segment.start_char, start))
    return common > 0.9 * (end - start) and common > 0.5 * (segment.end_char - segment.start_char)


@pytest.mark.parametrize("method", ["scan", "waterseeker"])
async def test_a_watermarked_span_in_a_long_text_is_found_with_its_characters(service, human, method):
    span = service.marked("a-one", tokens=300)
    document = human[:801] + span + human[801:1601]
    result = await service.one("localized", document, keys=["a-one"], fpr=FPR, method=method)
    assert result.verdict == "watermarked"
    (segment,) = result.segments
    assert marks(segment, 801, 801 + len(span))
    assert segment.log10_e_value <= -2


async def test_spans_of_two_keys_are_attributed_to_each(service, human: str) -> None:
    one, two = service.marked("a-one", tokens=300), service.marked("a-two", tokens=300)
    document = human[:501] + one + human[501:1000] + two + human[1000:1500]
    result = await service.one("localized", document, keys=["a-one", "a-two"], fpr=FPR, evidence="blocks")
    assert [segment.key.key_id for segment in result.segments] == ["a-one", "a-two"]
    assert marks(result.segments[0], 501, 801)
    assert marks(result.segments[1], 1300, 1600)
    for segment in result.segments:
        scores = [
            block.score
            for block in result.evidence
            if segment.start_token <= block.start_token and block.end_token <= segment.end_token
        ]
        assert np.mean(scores) > 0.4


async def test_the_evidence_follows_the_text_over_an_inserted_word(service) -> None:
    """Read at one boundary, all that follows the word would look like text without a watermark."""
    tokens = service.tokenizer.encode(service.marked("a-one", tokens=400))
    edited = [*tokens[:251], tokens[0], *tokens[251:]]
    body = {"inputs": [{"token_ids": edited}], "keys": ["a-one"], "evidence": "blocks"}
    after = []
    for mode in ("direct", "combined"):
        (result,) = await service.results(mode, body)
        assert result.verdict == "watermarked"
        after.append(np.mean([block.score for block in result.evidence if block.start_token > 260]))
    assert after[0] < 0.5 < 1.0 < after[1]


OPTIONS: list[tuple[str, dict[str, object], str]] = [
    *(("aligned", {"beta": odd}, "full") for odd in (-1, 101, "five")),
    ("aligned", {"beta": 4.5}, "verdict"),
    ("localized", {"method": "guess"}, "full"),
    *((mode, {"conversation": True}, "full") for mode in ("direct", "aligned", "localized")),
]


async def test_options_are_refused_by_their_names(service) -> None:
    for mode, option, token in OPTIONS:
        await assert_problem(service, mode, ONE | option, token, param=next(iter(option)))


KINDS: dict[str, tuple[Mode, dict[str, Any]]] = {
    "direct": ("direct", {"phase": "any"}),
    "aligned": ("aligned", {}),
    "decoys": ("aligned", {"beta": 4.0}),
    "scan": ("localized", {}),
}


def test_the_cost_counts_documents_versions_keys_of_a_pool_and_decoys(service: Service) -> None:
    one = service.keys["a-one"]

    def cost(name: str, tokens: int = 4_000, documents: int = 1, times: int = 1, pool: int = 1) -> int:
        key = replace(one, profile=one.profile.model_copy(update={"pool": pool}))
        mode, options = KINDS[name]
        request = DetectionOptions(mode=mode, **options).request([Document(token_ids=[97])] * documents)
        readers = [DocumentReader(document, ["as_sent"], 1.0) for document in request.inputs]
        method = means_of(service.backend).method_of(request)
        return request_cost(request, method, readers, KeySelection.of([key] * times), lambda *_: tokens)

    for name in ("direct", "aligned", "scan"):
        small, middle, large = (cost(name, pool=pool) for pool in (16, 256, 4096))
        assert large - middle == pytest.approx(16 * (middle - small), rel=0.01)
        assert 100 * cost(name) < middle < 256 * cost(name)
    assert cost("aligned", documents=20) > 8 * cost("aligned")
    assert cost("aligned", times=20) == pytest.approx(20 * cost("aligned"), rel=0.2)
    assert cost("decoys") > 8 * cost("aligned")
    assert cost("direct", tokens=40_000) > 5 * cost("direct")


async def test_answers_with_decoys_are_the_same_when_the_work_is_interrupted(service: Service) -> None:
    await test_work.test_answers_are_the_same_to_the_byte_when_the_work_is_interrupted(
        service, ("aligned", {"beta": 4.0})
    )
