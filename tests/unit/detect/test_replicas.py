"""Any replica answers any request the same, byte for byte."""

import pytest

from tests.unit.detect.served import served


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
async def test_two_replicas_give_the_same_bytes(service, mode: str, options: dict[str, object]) -> None:
    texts = [service.marked("a-one", tokens=160), "no watermark is in here. " * 12, "short"]
    body = {"inputs": [{"text": text} for text in texts], "evidence": "blocks", "fpr": 1e-2, **options}
    headers = {**service.headers(), "X-Request-ID": "the-same"}
    async with served(service.backend, service.authenticate) as other_replica:
        answers = [
            await client.post(f"/v1/detect/{mode}", json=body, headers=headers)
            for client in (service.client, other_replica, service.client)
        ]
    assert answers[0].status_code == 200, answers[0].text
    assert len({answer.content for answer in answers}) == 1
