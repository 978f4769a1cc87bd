"""Keys of other systems beside our own, and a manifest beside both: all are named, where they are."""

import math
from typing import Any

import numpy as np
import pytest

from tests.unit.detect_service.conftest import HUMAN, LETTERS, Service
from tests.unit.detect_service.foreign_keys import GIVEN, KEY, Foreign, vllm_text
from ttmark.detect_service.features.files.commands.detect import show
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import without_wrappers
from ttmark.shared.schemas.detection.detect import CombinedResult
from ttmark.shared.watermark.foreign import VllmGumbel
from ttmark.shared.watermark.foreign.foreign_mark import window_count


@pytest.mark.parametrize("mode", ["combined", "direct", "aligned", "localized"])
async def test_a_text_of_another_system_is_named_in_every_mode(foreign: Foreign, mode: str) -> None:
    text = vllm_text(foreign.service.tokenizer, 200)
    result = await foreign.ask(mode, text, ["a-one", "partner"])
    assert (result["verdict"], result["basis"]) == ("watermarked", "foreign_watermark")
    assert (result["key"]["key_id"], result["key"]["scheme"]) == ("partner", "vllm-gumbel")
    assert result["log10_p"] < -10
    assert [one["key"]["key_id"] for one in result["foreign_marks"]] == ["partner"]
    words = result["message"]["explanation"]
    assert "the mark of vLLM (Gumbel), key partner, version 1" in words
    assert "our key" not in words


async def test_without_evidence_the_answer_says_whose_mark_it_is_and_no_more(foreign: Foreign) -> None:
    text = vllm_text(foreign.service.tokenizer, 200)
    result = await foreign.ask("combined", text, ["a-one", "partner"], token="verdict")
    assert (result["verdict"], result["basis"]) == ("watermarked", "foreign_watermark")
    assert result["message"]["explanation"].startswith(
        "This text contains passages that carry the mark of another"
    )
    assert result["key"] is result["log10_p"] is result["segments"] is result["scored_blocks"] is None
    assert "foreign_marks" not in result
    assert "partner" not in str(result)


@pytest.mark.parametrize("mode", ["combined", "direct", "aligned", "localized"])
async def test_nothing_is_found_in_a_text_of_nobodys(foreign: Foreign, mode: str) -> None:
    for scheme in GIVEN:
        if scheme != "vllm-gumbel":
            await foreign.add(scheme, scheme)
    generator = np.random.default_rng(2)
    text = "".join(chr(one) for one in generator.choice(LETTERS, size=200))
    alone = await foreign.ask(mode, text, ["a-one"], normalize=False)
    result = await foreign.ask(
        mode, text, ["a-one", "partner", *GIVEN.keys() - {"vllm-gumbel"}], normalize=False
    )
    assert (result["verdict"], result["basis"]) == ("not_detected", "watermark")
    assert "foreign_marks" not in result
    assert result["key"] is None
    windows = window_count(200)
    more = {"direct": 5, "aligned": 5, "localized": 5 * windows, "combined": 5 * (1 + windows)}[mode]
    assert result["hypotheses"] == alone["hypotheses"] + more


async def test_our_p_value_is_corrected_for_foreign_keys_and_theirs_for_ours(foreign: Foreign) -> None:
    ours, theirs = foreign.service.marked("a-one", 100), vllm_text(foreign.service.tokenizer, 100)
    for text, first, second in ((ours, "a-one", "partner"), (theirs, "partner", "a-one")):
        alone = await foreign.ask("direct", text, [first], normalize=False)
        both = await foreign.ask("direct", text, [first, second], normalize=False)
        assert both["log10_p"] == pytest.approx(alone["log10_p"] + math.log10(2))
    tokens = np.array(foreign.service.tokenizer.encode(theirs))
    assert alone["log10_p"] == pytest.approx(VllmGumbel(KEY).detect(tokens).log10_p)


async def test_a_foreign_key_alone_is_enough(foreign: Foreign) -> None:
    found = await foreign.ask("combined", vllm_text(foreign.service.tokenizer, 60), ["partner"])
    assert (found["verdict"], found["scope"]) == ("watermarked", "whole")
    short = await foreign.ask("combined", "a", ["partner"], fpr=1e-10)
    assert (short["verdict"], short["tokens_needed"]) == ("too_short", 2)
    human = await foreign.ask("combined", HUMAN, ["partner"])
    assert (human["verdict"], human["scored_blocks"] > 20) == ("not_detected", True)
    ids = await foreign.service.post("/v1/detect", {"inputs": [{"token_ids": []}], "keys": ["partner"]})
    assert ids.json()["results"][0]["verdict"] == "too_short"


async def test_what_the_answer_says_reads_the_same_over_the_client(foreign: Foreign) -> None:
    body = await foreign.ask("combined", vllm_text(foreign.service.tokenizer, 100), ["partner"])
    assert CombinedResult.model_validate(body).model_dump(mode="json") == body


async def test_foreign_keys_are_listed_as_such_and_one_without_its_tokenizer_is_skipped(foreign):
    await foreign.add("elsewhere", "kgw", "e" * 64)
    listed = await foreign.service.client.get("/v1/keys", headers=foreign.service.headers())
    shown = {key["key_id"]: key for key in listed.json()["keys"]}
    assert (shown["partner"]["foreign"], shown["partner"]["scheme"]) == (True, "vllm-gumbel")
    assert shown["a-one"]["foreign"] is False
    assert str(KEY) not in listed.text
    asked = await foreign.service.post("/v1/detect", {"inputs": [{"text": HUMAN}]})
    assert "elsewhere" in asked.json()["skipped_keys"]
    refused = await foreign.service.post("/v1/detect", {"inputs": [{"text": HUMAN}], "keys": ["elsewhere"]})
    assert refused.status_code == 422


async def test_a_retired_foreign_key_is_no_longer_looked_for(foreign: Foreign) -> None:
    text = vllm_text(foreign.service.tokenizer, 200)
    await foreign.ring.retire("partner", 1)
    await foreign.refresh()
    result = await foreign.ask("combined", text, ["a-one", "partner"])
    assert result["verdict"] == "not_detected"


async def test_tokens_that_the_models_do_not_have_are_read(foreign: Foreign) -> None:
    for scheme in GIVEN:
        if scheme != "vllm-gumbel":
            await foreign.add(scheme, scheme, "e" * 64)  # unknown here, so that any token id may be sent
    ids = np.random.default_rng(0).integers(0, 2**32 - 1, 100).tolist()
    body = {
        "inputs": [{"token_ids": ids}, {"token_ids": [2**32 - 2] * 100}],
        "keys": [*GIVEN.keys() - {"vllm-gumbel"}],
    }
    for mode in ("", "/direct", "/aligned", "/localized"):
        response = await foreign.service.post(f"/v1/detect{mode}", body)
        assert response.status_code == 200, response.text
        assert {one["verdict"] for one in response.json()["results"]} <= {"not_detected", "too_short"}


THREE_KEYS = ("a-one", "a-two", "partner")
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


def passages(result: dict[str, Any], text: str) -> list[str]:
    marked = [*result["segments"], *(one for mark in result["foreign_marks"] for one in mark["segments"])]
    return [without_wrappers(text[one["start_char"] : one["end_char"]]) for one in marked]


async def test_all_three_are_named(foreign, ours, theirs, signer, capsys):
    text = BEFORE + ours + BEFORE + theirs + BEFORE
    wrapper = signer.wrapper(text, model="smollm2")
    result = await foreign.ask("combined", text + wrapper, THREE_KEYS, normalize=False)
    assert (result["verdict"], result["basis"], result["key"]["key_id"]) == (
        "watermarked",
        "watermark",
        "a-one",
    )
    [passage], [mark], [manifest] = result["segments"], result["foreign_marks"], result["metadata"]
    assert abs(passage["start_char"] - text.index(ours)) < 40
    (found,) = mark["segments"]
    start = text.index(theirs)
    assert min(start + 300, found["end_char"]) - max(start, found["start_char"]) > 200
    assert found["end_char"] - found["start_char"] < 700
    assert (mark["key"]["key_id"], mark["key"]["scheme"]) == ("partner", "vllm-gumbel")
    assert (manifest["status"], manifest["covers"]) == ("valid", "whole")
    show([CombinedResult.model_validate(result)], as_json=False)
    words, shown = result["message"]["explanation"], capsys.readouterr().out
    assert "contains a passage made with our key a-one, version 1. It holds" in words
    assert "The text also contains passages that carry the mark" in words
    for named in (
        "made with our key a-one, version 1.",
        "the mark of vLLM (Gumbel), key partner, version 1.",
        "A signed manifest (C2PA) of Test Service verifies and says that smollm2 wrote this text",
    ):
        assert named in words
        assert named in shown
    plain = await foreign.ask("combined", text, THREE_KEYS, normalize=False)
    for only in ("metadata", "message"):
        result.pop(only)
        plain.pop(only, None)
    assert result == plain


async def test_a_manifest_inside_says_which_passage_and_moves_the_others(foreign, ours, theirs, signer):
    wrapper = signer.wrapper(ours, model="smollm2")
    text = BEFORE + ours + wrapper + BEFORE + theirs + BEFORE
    result = await foreign.ask("combined", text, THREE_KEYS, normalize=False)
    [manifest] = result["metadata"]
    assert (manifest["status"], manifest["covers"]) == ("valid", "passage")
    assert text[manifest["start_char"] : manifest["end_char"]] == ours
    assert "says that smollm2 wrote the text before it" in result["message"]["explanation"]
    plain = await foreign.ask("combined", without_wrappers(text), THREE_KEYS, normalize=False)
    assert len(passages(plain, text)) == 2
    assert passages(result, text) == passages(plain, without_wrappers(text))


async def test_a_foreign_mark_and_a_manifest_without_ours(foreign, theirs, signer):
    signed = theirs + signer.wrapper(theirs, model="smollm2")
    result = await foreign.ask("combined", signed, THREE_KEYS)
    assert (result["verdict"], result["basis"]) == ("watermarked", "foreign_watermark")
    assert result["metadata"][0]["status"] == "valid"
    told = await foreign.ask("combined", signed, THREE_KEYS, token="verdict")
    assert (told["verdict"], told["basis"]) == ("watermarked", "foreign_watermark")
    words = told["message"]["explanation"]
    assert "the mark of another system" in words
    assert "says that smollm2 wrote this text" in words
