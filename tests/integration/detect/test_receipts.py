"""Receipts: what generation says of a completion is what detection says of its text."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest

from tests.contract.openai.composed import Keys
from tests.unit.detect_service.served import detection_app
from ttmark.detect_service.documents.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.features.files.text.extraction import ExtractionLimits
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.gen_service.api.app import create_generation_app
from ttmark.gen_service.api.plan.backend import GenerationBackend, RequestLimits
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.demo_model import PROMPTS_PATH
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.app import AppOptions
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.schemes.registry import scheme_names

FPR = 1e-5
PROFILES = [(scheme, block_size) for scheme in sorted(scheme_names()) for block_size in (1, 2, 3)]


def _keys(fingerprint: str) -> Keys:
    drawn = np.random.default_rng(38)
    keys = {}
    for scheme, block_size in PROFILES:
        profile = Profile.model_validate(
            {"scheme": scheme, "block_size": block_size, "tokenizer_fingerprint": fingerprint}
        )
        version = UnlockedVersion(1, KeyState.PRIMARY, drawn.bytes(16))
        name = f"{scheme}-{block_size}"
        keys[name] = UnlockedKey(name, "acme", profile, 1, (version,))
    return Keys(keys)


async def _authenticate(token: str) -> Principal:
    scopes = {Scope.GENERATE, Scope.DETECT, Scope.DETECT_EVIDENCE}
    return Principal(token, "acme", frozenset(scopes))


@dataclass(frozen=True)
class Services:
    generation: httpx.AsyncClient
    detection: httpx.AsyncClient
    tokenizer: TextTokenizer

    async def choices(self, profile: tuple[str, int], **fields: Any) -> list[dict[str, Any]]:
        """Completions, each with the receipt that came with it."""
        key_id = f"{profile[0]}-{profile[1]}"
        body = {"model": "demo", "watermark": {"key_id": key_id}, "return_token_ids": True}
        response = await self.generation.post("/v1/completions", json=body | fields)
        assert response.status_code == 200, response.text
        answer = response.json()
        receipts = answer["watermark"]["choices"]
        return [choice | receipt for choice, receipt in zip(answer["choices"], receipts, strict=True)]

    async def detected(
        self, key_id: str, documents: list[dict[str, Any]], fpr: float
    ) -> list[dict[str, Any]]:
        """Direct detection's results under one key."""
        body = {"inputs": documents, "keys": [key_id], "fpr": fpr, "phase": "any"}
        response = await self.detection.post("/v1/detect/direct", json=body)
        assert response.status_code == 200, response.text
        results: list[dict[str, Any]] = response.json()["results"]
        return results


@pytest.fixture(params=[0.0, 4.0], ids=["", "with openings"])
async def services(engine: Engine, request: pytest.FixtureRequest) -> AsyncIterator[Services]:
    keys = _keys(engine.tokenizer.fingerprint)
    generation = create_generation_app(
        GenerationBackend(
            {"demo": ServedModel(engine)},
            keys,
            limits=RequestLimits(max_completions=64),
            opening_bits=request.param,
        ),
        AppOptions(authenticate=_authenticate),
    )
    workers = ExtractionWorkers(ExtractionLimits(workers=1))
    detection = detection_app(
        DetectionBackend(keys, TokenizerSet([engine.tokenizer]), max_document_tokens=5_000),
        AppOptions(authenticate=_authenticate),
        workers=workers,
    )
    headers = {"Authorization": "Bearer any"}
    async with (
        httpx.AsyncClient(
            transport=httpx.ASGITransport(generation), base_url="http://gen", headers=headers, timeout=600
        ) as gen,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(detection), base_url="http://detect", headers=headers, timeout=600
        ) as detect,
    ):
        yield Services(gen, detect, engine.tokenizer)
    await workers.close()


async def test_receipts_are_what_detection_says(services: Services) -> None:
    """To the last bit; a receipt's word is the verdicts at the rate and at a thousandth of it."""
    beginnings = [json.loads(line)["prompt"] for line in PROMPTS_PATH.read_text().splitlines()]
    counts: Counter[str] = Counter()
    for number, profile in enumerate(PROFILES):
        key_id = f"{profile[0]}-{profile[1]}"
        choices = await services.choices(
            profile,
            prompt=beginnings[number],
            n=5,
            seed=number,
            temperature=1.0,
            top_k=8,
            max_tokens=60 - number,  # lengths that blocks of two and three do not divide
        )
        ids = [{"token_ids": services.tokenizer.encode(choice["text"])} for choice in choices]
        at_rate = await services.detected(key_id, ids, FPR)
        at_thousandth = await services.detected(key_id, ids, FPR / 1000)
        texts = [{"text": choice["text"]} for choice in choices]
        from_text = await services.detected(key_id, texts, FPR)
        for choice, weak, strong, text in zip(choices, at_rate, at_thousandth, from_text, strict=True):
            found = [result["verdict"] == "watermarked" for result in (weak, strong)]
            word = {0: "none", 1: "weak", 2: "strong"}[sum(found)]
            assert (choice["detectability"], choice["log10_p"]) == (word, weak["log10_p"])
            counts[word] += 1
            counts[f"text of a {word} one"] += text["verdict"] == "watermarked"
    assert counts["none"] + counts["weak"] + counts["strong"] == 60
    assert min(counts["none"], counts["weak"], counts["strong"]) > 0
    assert counts["text of a strong one"] > 0.95 * counts["strong"]
