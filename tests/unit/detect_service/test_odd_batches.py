"""Batches of odd texts over HTTP in process: every document has a verdict, under tokenizers of each kind."""

import random
from collections.abc import Iterable

import pytest

from tests.harness.odd_batches import Batch, letter_batches, random_batch
from tests.harness.trained_tokenizers import KINDS
from tests.unit.detect_service.callers import known
from tests.unit.detect_service.held_keys import key_of
from tests.unit.detect_service.served import served
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet

pytestmark = pytest.mark.long

TRAINING = ["the cat sat on the mat and the dog sat on the log", "a fine caf\u00e9 in the town"] * 4


@pytest.fixture(scope="module")
def backend() -> DetectionBackend:
    """With a key for each kind of tokenizer."""
    tokenizers = [train(TRAINING, 400) for train in KINDS.values()]
    keys = [
        key_of(tokenizer, bytes([number] * 16), f"k{number}", pool=number + 1)
        for number, tokenizer in enumerate(tokenizers)
    ]
    return DetectionBackend(FixedKeys.of(keys), TokenizerSet(tokenizers), max_document_tokens=20_000)


async def complaints(backend: DetectionBackend, batches: Iterable[Batch]) -> list[str]:
    headers = {"Authorization": "Bearer mine", "Content-Type": "application/json"}
    found = []
    async with served(backend, known, raises=False, headers=headers) as client:
        for batch in batches:
            answer = await client.post(batch.path, content=batch.content)
            if complaint := batch.complaint(answer.status_code, answer.content):
                found.append(f"{complaint} ({batch.path})")
    return found


@pytest.mark.parametrize("step", [1_999, pytest.param(1, marks=pytest.mark.slow)])
async def test_every_letter_has_a_verdict(backend, step: int) -> None:
    assert await complaints(backend, letter_batches(step)) == []


@pytest.mark.parametrize("count", [30, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_every_document_of_random_batches_has_a_verdict(backend, count: int) -> None:
    generator = random.Random(count)
    assert await complaints(backend, (random_batch(generator) for _ in range(count))) == []
