"""Texts from the generation service to the detection service, as they are and with a letter changed."""

import random
from collections.abc import AsyncIterator
from itertools import islice

import httpx
import pytest

from tests.contract.openai.composed import build_service
from tests.contract.openai.fake_generator import FakeGenerator
from tests.unit.detect.conftest import Service
from tests.unit.detect.test_manifests import altered
from ttmark.detect_service.manifests.examiner import MOST_OF_A_REQUEST
from ttmark.gen_service.api.provenance import ManifestRule
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import wrappers
from ttmark.shared.schemas.manifests import FoundManifest

CHOICES = 8


async def generated(service: Service) -> AsyncIterator[str]:
    """Signed texts without end."""
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    generation = build_service(FakeGenerator(), manifests=ManifestRule(signer))
    body = {"model": "tiny", "prompt": "Once", "n": CHOICES, "watermark": {"manifest": True}}
    transport = httpx.ASGITransport(generation.app)
    headers = {"Authorization": "Bearer author"}
    async with httpx.AsyncClient(transport=transport, base_url="http://gen", headers=headers) as client:
        for length in range(20, 10**6):
            response = await client.post("/v1/completions", json=body | {"max_tokens": length % 200 + 20})
            assert response.status_code == 200, response.text
            for choice in response.json()["choices"]:
                yield choice["text"]


async def asked(service: Service, texts: list[str]) -> list[FoundManifest]:
    """The one manifest of each text."""
    manifests = []
    remaining = iter(texts)
    while some := list(islice(remaining, MOST_OF_A_REQUEST)):
        body = {"inputs": [{"text": text} for text in some], "keys": ["a-one"]}
        for result in await service.results("direct", body):
            [one] = result.metadata
            manifests.append(one)
    return manifests


@pytest.mark.parametrize("count", [24, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_texts_go_round_and_altered_ones_are_refused(service: Service, count: int) -> None:
    chance = random.Random(9)
    texts = []
    async for text in generated(service):
        texts.append(text)
        if len(texts) == count:
            break
    found = await asked(service, texts)
    assert [(one.status, one.covers) for one in found] == [("valid", "whole")] * count
    changed = []
    for text in texts:
        [wrapper] = wrappers(text)
        changed.append(altered(text[: wrapper.start], wrapper.characters, chance))
    found = await asked(service, changed)
    assert [one.status for one in found] == ["does_not_verify"] * count
