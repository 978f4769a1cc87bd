"""Any replica answers any request the same, byte for byte."""

from collections.abc import AsyncIterator

import httpx
import pytest

from ttmark.detect_service.api.app import create_detection_app
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.health import Readiness


@pytest.fixture
async def other_replica(service) -> AsyncIterator[httpx.AsyncClient]:
    app = create_detection_app(
        service.backend,
        AppOptions(authenticate=service.authenticate),
        readiness=lambda: Readiness({"keys": True}),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://other") as client:
        yield client


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("direct", {"phase": "any"}),
        ("aligned", {}),
        ("aligned", {"beta": 3.5}),  # no null table has it: the p-value comes from decoys
        ("localized", {}),
        ("localized", {"method": "waterseeker"}),
    ],
)
async def test_two_replicas_give_the_same_bytes(
    service, other_replica: httpx.AsyncClient, mode: str, options: dict[str, object]
) -> None:
    texts = [service.marked("a-one", tokens=160), "no watermark is in here. " * 12, "short"]
    body = {"inputs": [{"text": text} for text in texts], "evidence": "blocks", "fpr": 1e-2, **options}
    headers = {**service.headers(), "X-Request-ID": "the-same"}
    answers = [
        await client.post(f"/v1/detect/{mode}", json=body, headers=headers)
        for client in (service.client, other_replica, service.client)
    ]
    assert answers[0].status_code == 200, answers[0].text
    assert len({answer.content for answer in answers}) == 1
