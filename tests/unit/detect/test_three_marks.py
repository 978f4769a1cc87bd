"""One document with our passage, another system's, and a manifest: all three are named, where they are."""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.detect.conftest import Service
from tests.unit.detect.test_bulk import job, rows_of, run
from tests.unit.detect.test_foreign_keys import HUMAN, Foreign, foreign, vllm_text
from ttmark.detect_service.bulk import Examiner
from ttmark.detect_service.bulk.job import Tally
from ttmark.detect_service.options import DetectionOptions
from ttmark.services.cli.detect import show
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import without_wrappers
from ttmark.shared.schemas.detection_combined import CombinedResult

__all__ = ["foreign"]  # a fixture
KEYS = ("a-one", "a-two", "partner")
BEFORE = HUMAN * 6


@pytest.fixture
def ours(foreign: Foreign) -> str:
    return foreign.service.marked("a-one", 300)


@pytest.fixture
def theirs(foreign: Foreign) -> str:
    return vllm_text(foreign.service.tokenizer, 300)


@pytest.fixture
def signer(service: Service) -> ManifestSigner:
    return ManifestSigner(service.authority.chain, service.authority.key)


def moved(result: dict[str, Any], by: int, place: int) -> dict[str, Any]:
    """The result with places behind `place` moved by so many characters."""

    def passage(one: dict[str, Any]) -> dict[str, Any]:
        start, end = one["start_char"], one["end_char"]
        return one | {"start_char": start + by * (start >= place), "end_char": end + by * (end > place)}

    marks = [
        mark | {"segments": [passage(one) for one in mark["segments"]]} for mark in result["foreign_marks"]
    ]
    return result | {"segments": [passage(one) for one in result["segments"]], "foreign_marks": marks}


async def test_all_three_are_named(foreign, ours, theirs, signer, capsys):
    text = BEFORE + ours + BEFORE + theirs + BEFORE
    wrapper = signer.wrapper(text, model="smollm2")
    result = await foreign.ask("combined", text + wrapper, KEYS, normalize=False)
    assert (result["verdict"], result["basis"], result["key"]["key_id"]) == (
        "watermarked",
        "watermark",
        "a-one",
    )
    [passage], [mark], [manifest] = result["segments"], result["foreign_marks"], result["metadata"]
    assert abs(passage["start_char"] - text.index(ours)) < 40
    assert (mark["key"]["key_id"], mark["key"]["scheme"]) == ("partner", "vllm-gumbel")
    assert (manifest["status"], manifest["covers"]) == ("valid", "whole")
    show([CombinedResult.model_validate(result)], as_json=False)
    words, shown = result["message"]["explanation"], capsys.readouterr().out
    for named in (
        "made with our key a-one, version 1.",
        "the mark of vLLM (Gumbel), key partner, version 1.",
        "A signed manifest (C2PA) of Test Service verifies and says that smollm2 wrote this text",
    ):
        assert named in words
        assert named in shown
    plain = await foreign.ask("combined", text, KEYS, normalize=False)
    for only in ("metadata", "message"):
        result.pop(only)
        plain.pop(only, None)
    assert result == plain


async def test_a_manifest_inside_says_which_passage_and_moves_the_others(foreign, ours, theirs, signer):
    wrapper = signer.wrapper(ours, model="smollm2")
    text = BEFORE + ours + wrapper + BEFORE + theirs + BEFORE
    result = await foreign.ask("combined", text, KEYS, normalize=False)
    [manifest] = result["metadata"]
    assert (manifest["status"], manifest["covers"]) == ("valid", "passage")
    assert text[manifest["start_char"] : manifest["end_char"]] == ours
    assert "says that smollm2 wrote the text before it" in result["message"]["explanation"]
    plain = await foreign.ask("combined", without_wrappers(text), KEYS, normalize=False)
    expected = moved(plain, len(wrapper), text.index(wrapper))
    assert result["segments"] == expected["segments"]
    assert result["foreign_marks"] == expected["foreign_marks"]
    [found] = result["foreign_marks"][0]["segments"]
    start = text.index(theirs)
    assert min(start + 300, found["end_char"]) - max(start, found["start_char"]) > 200


async def test_a_foreign_mark_and_a_manifest_without_ours(foreign, theirs, signer):
    signed = theirs + signer.wrapper(theirs, model="smollm2")
    result = await foreign.ask("combined", signed, KEYS)
    assert (result["verdict"], result["basis"]) == ("watermarked", "foreign_watermark")
    assert result["metadata"][0]["status"] == "valid"
    told = await foreign.ask("combined", signed, KEYS, token="verdict")
    assert (told["verdict"], told["basis"]) == ("watermarked", "foreign_watermark")
    words = told["message"]["explanation"]
    assert "the mark of another system" in words
    assert "says that smollm2 wrote this text" in words


async def test_rows_of_bulk_runs_name_them_and_verify_nothing(foreign, ours, theirs, signer, tmp_path):
    both = ours + BEFORE + theirs
    texts = [both + signer.wrapper(both, model="m"), theirs, "nothing in here. " * 20]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    options = DetectionOptions(keys=KEYS)
    examiner = Examiner(foreign.service.backend, "a", options)
    _, tally = await asyncio.to_thread(run, job(source, options=options), examiner)
    assert tally == Tally(3, failed=0, found=2, unread=1)
    shown = [(row["basis"], row["foreign_marks"], row["metadata"]) for row in rows_of(tmp_path / "out.jsonl")]
    assert shown == [
        ("watermark", ["partner"], ["not_examined"]),
        ("foreign_watermark", ["partner"], None),
        ("watermark", None, None),
    ]
