"""Batches of odd texts to a detection service as it is served: no answer of 5xx, every document a verdict."""

import asyncio
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import httpx
import pytest

from tests.harness.job_tenants import provision
from tests.harness.odd_batches import Batch, letter_batches, random_batch
from tests.integration.detect.service_figures import serving

UNLIMITED = {
    "TTMARK_ANSWERS_PER_PASSAGE": "0",
    "TTMARK_BLOCKS_PER_MINUTE": "0",
    "TTMARK_REQUESTS_PER_MINUTE": "0",
    "TTMARK_DOCUMENTS_PER_MINUTE": "0",
}


def random_batches(count: int) -> Iterator[Batch]:
    generator = random.Random(7)
    return (random_batch(generator) for _ in range(count))


@pytest.mark.parametrize(("step", "count"), [(1_997, 30), pytest.param(1, 10_000, marks=pytest.mark.slow)])
def test_every_document_has_a_verdict(tmp_path: Path, step: int, count: int) -> None:
    token, complaints = asyncio.run(provision(tmp_path))["small"], []
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with (
        serving(tmp_path, UNLIMITED) as (port, _),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client,
    ):
        for batch in chain(letter_batches(step), random_batches(count)):
            answer = client.post(batch.path, content=batch.content)
            if complaint := batch.complaint(answer.status_code, answer.content):
                complaints.append(f"{complaint} ({batch.path})")
        failed = [
            line
            for line in client.get("/metrics").text.splitlines()
            if line.startswith("ttmark_detect_documents_total") and 'verdict="not_examined"' in line
        ]
    assert complaints == []
    assert failed
    assert all(line.endswith(" 0.0") for line in failed)
