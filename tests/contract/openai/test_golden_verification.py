"""What a model helps to say of a text, after a prompt and at a sampling, is what the golden set says."""

import json

import numpy as np
import pytest

from tests.harness.golden_verification import PATH, Replayed, verified, verifying_app
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.engine import Engine, EngineSettings, ReadingRequest
from ttmark.services.model_folder import read_chat_template

CASES = json.loads(PATH.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_the_route_gives_the_golden_answer(case):
    app = verifying_app(Replayed(CASES), read_chat_template(DEMO_MODEL_PATH))
    answer = await verified(app, case["question"])
    for name in ("log10_e", "log10_p"):
        assert answer.pop(name) == pytest.approx(case["answer"][name], rel=0, abs=1e-9)
    assert answer == {name: case["answer"][name] for name in answer}


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
