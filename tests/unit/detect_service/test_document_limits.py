"""A document over the limit is refused by itself, unread or read up to it, at the price of what was read."""

from contextlib import AbstractAsyncContextManager

import pytest
from httpx import AsyncClient

from tests.harness.detection_routes import route_of
from tests.unit.detect_service.conftest import Service
from tests.unit.detect_service.served import served
from ttmark.detect_service.cost import reading_cost
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.rate_limits import Grant, WorkBudget
from ttmark.shared.tokenization import BYTES_OF_A_TOKEN, TextTokenizer

MOST = 5_000
FAR = "a" * (MOST * BYTES_OF_A_TOKEN + 1)  # refused by its bytes
OVER = "ab " * MOST  # refused by its tokens
FULL = 1_000_000


class Budget(WorkBudget):
    """Of a million blocks; the clock stands."""

    def __init__(self) -> None:
        self.counters = LocalCounters()
        super().__init__("detect", self.counters, per_minute=FULL, now=lambda: 6_000.0)

    def used(self) -> int:
        return sum(sum(parts.values()) for parts, _ in self.counters._values.values())


def client_of(service: Service, budget: WorkBudget | None = None) -> AbstractAsyncContextManager[AsyncClient]:
    return served(service.backend, service.authenticate, headers=service.headers(), budget=budget)


def forbidden(*_: object, **__: object) -> None:
    raise AssertionError("looked at")


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text may be looked at by what takes time in proportion to it."""

    monkeypatch.setattr(TextTokenizer, "encode", forbidden)
    monkeypatch.setattr("ttmark.detect_service.normalization.normalizer.TextNormalizer.readings", forbidden)


@pytest.mark.usefixtures("unread")
async def test_a_text_of_more_bytes_than_its_tokens_can_have_is_refused_unread(service, mode) -> None:
    response = await service.post(route_of(mode), {"inputs": [{"text": FAR}]})
    assert (response.status_code, response.json()["param"]) == (413, "inputs[0]")
    assert response.json()["detail"] == (
        "The document has more bytes than the limit of 80000, 16 for each of 5000 tokens."
    )


@pytest.mark.usefixtures("unread")
async def test_longer_lists_of_token_ids_are_refused_before_they_are_validated(service: Service) -> None:
    # What stands behind the limit is not even looked at for its type.
    ids: list[object] = [97] * (MOST + 1) + ["no id"] * MOST * 4
    response = await service.post("/v1/detect", {"inputs": [{"token_ids": ids}]})
    assert (response.status_code, response.json()["param"]) == (413, "inputs[0]")
    assert response.json()["detail"] == "The document has more tokens than the limit of 5000."


async def test_a_text_of_too_many_tokens_is_read_no_further_than_the_limit(service, monkeypatch):
    calls: list[int | None] = []
    encode = TextTokenizer.encode

    def counting(tokenizer: TextTokenizer, text: str, most: int | None = None) -> list[int]:
        calls.append(most)
        return encode(tokenizer, text, most)

    monkeypatch.setattr(TextTokenizer, "encode", counting)
    response = await service.post("/v1/detect", {"inputs": [{"text": OVER}]})
    assert (response.status_code, response.json()["param"]) == (413, "inputs[0]")
    assert calls == [MOST]


async def test_documents_over_a_limit_fail_alone_in_words_for_it(service: Service) -> None:
    marked = service.marked("a-one")
    fine: list[dict[str, object]] = [{"text": marked}, {"id": "x", "text": "a cat on a mat " * 20}]
    mixed = [fine[0], {"id": "far", "text": FAR}, {"text": OVER}, {"token_ids": [97] * (MOST + 1)}, fine[1]]
    alone = (await service.post("/v1/detect", {"inputs": fine, "keys": ["a-one"]})).json()["results"]
    response = await service.post("/v1/detect", {"inputs": mixed, "keys": ["a-one"]})
    assert response.status_code == 200
    results = response.json()["results"]
    assert [one["verdict"] for one in results] == ["watermarked", *["not_examined"] * 3, alone[1]["verdict"]]
    tokens = "The document has more tokens than the limit of 5000."
    size = "The document has more bytes than the limit of 80000, 16 for each of 5000 tokens."
    assert [one["error"] for one in results[1:4]] == [
        {"code": "request_too_large", "message": message} for message in (size, tokens, tokens)
    ]
    assert [one["message"]["explanation"] for one in results[1:4]] == [size, tokens, tokens]
    assert results[1]["id"] == "far"
    assert results[0] == alone[0]
    assert results[4] == alone[1]


async def test_operators_do_not_hear_of_documents_that_callers_have_to_mend(service: Service) -> None:
    async with client_of(service) as client:
        await client.post("/v1/detect", json={"inputs": [{"text": FAR}, {"text": "a"}]})
        metrics = (await client.get("/metrics")).text
    assert 'ttmark_detect_documents_total{mode="combined",verdict="not_examined"} 0.0' in metrics


async def test_what_was_read_of_a_refused_text_is_charged(service: Service) -> None:
    budget = Budget()
    async with client_of(service, budget) as client:
        far = await client.post("/v1/detect", json={"inputs": [{"text": FAR}]})
        parsing = budget.used()
        assert (far.status_code, parsing) == (413, round(0.05 * len(far.request.content)))
        over = await client.post("/v1/detect", json={"inputs": [{"text": OVER}]})
    tokenizers = {key.profile.tokenizer_fingerprint for key in service.backend.keys.for_tenant("a")}
    installed = sum(fingerprint in service.backend.tokenizers for fingerprint in tokenizers)
    assert over.status_code == 413
    assert budget.used() == parsing + installed * reading_cost(MOST)


async def test_a_tenant_without_budget_has_nothing_read(service: Service) -> None:
    budget = Budget()
    assert isinstance(await budget.take("a", FULL), Grant)
    async with client_of(service, budget) as client:
        response = await client.post("/v1/detect", json={"inputs": [{"text": OVER}]})
    assert response.status_code == 429
