"""What a model helps to say of a text, after a prompt and at a sampling, is what the golden set says."""

import json

import numpy as np
import pytest

from tests.harness.golden_verification import MODEL, PATH, Replayed, answered, origin_of, posted, reading_app
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.request import ReadingRequest
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.services.model_folder import read_chat_template
from ttmark.shared.byte_reading import ByteReading, byte_ends, content_bytes, id_ends
from ttmark.shared.tokenization import TextTokenizer

CASES = json.loads(PATH.read_text())["cases"]


@pytest.fixture(scope="module")
def reader():
    """The generation service, whose model says what the golden set says."""
    return reading_app(Replayed(CASES), read_chat_template(DEMO_MODEL_PATH))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_a_question_with_a_prompt_and_sampling_gets_the_golden_answer(reader, case):
    """What `/v1/watermark/verify` said, which was there when the set was made."""
    answer, expected = await answered(reader, case["question"]), dict(case["answer"])
    for name in ("log10_e", "log10_p"):
        assert answer.pop(name) == pytest.approx(expected.pop(name), rel=0, abs=1e-9)
    assert answer == {name: expected[name] for name in answer}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_a_reading_with_the_same_prompt_and_sampling_says_the_same_of_each_token(reader, case):
    origin, content = origin_of(case["question"]), case["question"].get("text")
    ids = case["question"].get("token_ids")
    answer = await posted(reader, "/v1/readings", {"model": MODEL, "texts": [content or ids], **origin})
    (said,) = answer["readings"]
    asked, tokenizer = case["asked"], TextTokenizer.load(DEMO_MODEL_PATH)
    ends = id_ends(len(ids)) if ids else byte_ends(content, tokenizer.encode_with_offsets(content).offsets)
    size = len(content_bytes(content or tuple(ids)))
    assert (size, len(ends)) == (ends[-1], len(asked["text_ids"]))
    found = ByteReading.checked(said["starts"], said["ends"], said["logprobs"], size)
    spans = np.column_stack([[0, *ends[:-1]], ends])
    expected = [-9999.0 if one is None else one for one in case["logprobs"]]
    np.testing.assert_allclose(found.log_probs(spans), expected, rtol=0, atol=1e-9)
    before = len(asked["prompt_ids"]) if "prompt" in origin or "messages" in origin else 0
    assert answer["tokens"] == len(asked["text_ids"]) + before


async def test_the_model_says_what_the_golden_set_says_that_it_said():
    engine = Engine.load(str(DEMO_MODEL_PATH), EngineSettings(model_id="demo", threads=1, device="cpu"))
    engine.start()
    try:
        for case in CASES:
            asked, said = case["asked"], [-np.inf if one is None else one for one in case["logprobs"]]
            ids = tuple(asked["prompt_ids"]), tuple(asked["text_ids"])
            filters, penalty = FilterParams(**asked["filters"]), asked["repetition_penalty"]
            found = await engine.read(ReadingRequest("golden", *ids, filters, repetition_penalty=penalty))
            np.testing.assert_allclose(found, said, rtol=0, atol=1e-3)
    finally:
        engine.stop(0)
