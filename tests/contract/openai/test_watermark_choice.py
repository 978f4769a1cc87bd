"""Which key marks a text, and that nothing leaves without a mark by accident."""

from typing import Any

import pytest

from ttmark.shared.events import Event

REQUEST: dict[str, Any] = {"top_k": 4, "ignore_eos": True}


def _post(service: Any, token: str = "author", **change: Any) -> Any:
    return service.post("completions", token, **REQUEST | change)


def _block(service: Any, token: str = "author", **change: Any) -> dict[str, Any]:
    block: dict[str, Any] = service.block("completions", token, **REQUEST | change)
    return block


def test_an_unknown_key_and_another_tenants_key_are_the_same_404(fake: Any) -> None:
    unknown = _post(fake, watermark={"key_id": "acme-none"})
    foreign = _post(fake, watermark={"key_id": "globex-main"})
    assert unknown.status_code == foreign.status_code == 404
    assert unknown.json() == foreign.json()


def test_a_key_for_another_tokenizer_is_refused(fake: Any) -> None:
    response = _post(fake, watermark={"key_id": "acme-other"})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "watermark.key_id"


def test_a_tenant_with_several_keys_and_no_default_has_to_name_one(fake: Any) -> None:
    response = _post(fake, "undecided")
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "watermark.key_id"
    assert _post(fake, "undecided", watermark={"key_id": "umbrella-2"}).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize(("token", "watermark"), [("keyless", None), ("author", {"key_id": "acme-disabled"})])
def test_without_a_usable_key_there_is_no_text(fake, token, watermark, temperature, stream):
    response = _post(fake, token, watermark=watermark, temperature=temperature, stream=stream)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "no_usable_key"
    assert not fake.generator.requests


def test_keys_that_are_too_old_are_no_keys(fake: Any) -> None:
    fake.keys.ready = False
    response = _post(fake, watermark={"key_id": "acme-main"})
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "not_ready"
    assert fake.http().get("/readyz").status_code == 503
    assert not fake.generator.requests


@pytest.mark.parametrize(
    ("reason", "change"), [("greedy", {"temperature": 0}), ("disabled", {"watermark": {"enabled": False}})]
)
def test_text_without_a_mark_is_counted_and_greedy_text_in_blocks_of_its_key(
    service: Any, reason: str, change: Any
) -> None:
    block = _block(service, "operator", max_tokens=5, **change)
    assert (block["watermarked_blocks"], block["reasons"]) == (0, {reason: block["blocks"]})
    assert block["blocks"] == 3 or reason == "disabled"
    assert (block["status"], block["key_id"]) == ("unwatermarked", None)


def test_a_text_too_short_to_mark_says_so(service: Any) -> None:
    block = _block(service, max_tokens=1)
    assert block["status"] == "unwatermarked"
    assert block["watermarked_blocks"] == 0
    assert sum(block["reasons"].values()) == block["blocks"] == 1


def test_every_engine_request_of_a_marked_response_carries_the_key(fake: Any) -> None:
    _post(fake, n=3)
    assert [request.marking.key_id for request in fake.generator.requests] == ["acme-main"] * 3
    assert len({request.request_id for request in fake.generator.requests}) == 3


def test_each_use_of_a_key_is_audited_and_so_is_text_without_one(fake: Any) -> None:
    http = fake.http("operator")
    for watermark in (None, {"enabled": False}):
        body = {"model": "tiny", "prompt": "Once", "max_tokens": 16, "watermark": watermark}
        http.post("/v1/completions", json=body, headers={"X-Request-ID": "r-7"})
    used, written, unused, _ = fake.audit
    caller = {"token_id": "tok-operator", "tenant": "acme", "request_id": "r-7"}
    text = {"route": "/v1/completions", "tokens": 4, "rule": "default"}
    told = {"key_id": "acme-main", "version": 3, **caller, **text}
    assert (used, list(used.said)) == (Event("key.generate", **told), list(told))
    assert (written, list(written.said)) == (Event("key.generated", **told | {"tokens": 16}), list(told))
    assert list(unused.said) == [*caller, "reason", *text]  # so the log's line has them


def test_refused_requests_use_no_key(fake: Any) -> None:
    _post(fake, max_tokens=0)
    _post(fake, watermark={"key_id": "globex-main"})
    assert not fake.audit
