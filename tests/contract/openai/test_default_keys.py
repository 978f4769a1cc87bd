"""A service whose default key is not usable does not get ready, and says why."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import structlog
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from tests.contract.openai.composed import build_service
from tests.contract.openai.fake_generator import FakeGenerator

REASONS = {
    "nokey": "there is no key nokey; `ttmark keys list` shows those that there are, `ttmark keys create`",
    "acme-other": "the key acme-other is for another tokenizer than that of tiny, own-template, untold, "
    "tempered; ",
    "acme-disabled": "the key acme-disabled has no version in use; ",
}


@pytest.fixture(autouse=True)
def _logs_of_all_levels() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    yield
    structlog.configure(**before)


def readiness(service: Any) -> Any:
    return TestClient(service.app).get("/readyz")


@pytest.mark.parametrize("key_id", REASONS)
@pytest.mark.parametrize("beside", [[], ["acme-main"]])
def test_it_is_not_ready_and_says_why(key_id: str, beside: list[str]) -> None:
    service = build_service(FakeGenerator(), default_keys=[*beside, key_id])
    with capture_logs() as logs:
        for _ in range(3):
            answer = readiness(service)
    assert answer.status_code == 503
    body = answer.json()
    assert body["checks"] == {"models": True, "keys": True, "default_key": False}
    assert body["reasons"]["default_key"].startswith(f"TTMARK_DEFAULT_KEY: {REASONS[key_id]}")
    assert [log["reason"] for log in logs] == [body["reasons"]["default_key"]]


def test_it_gets_ready_when_the_key_appears_and_stays_ready_when_it_goes() -> None:
    service = build_service(FakeGenerator(), default_keys=["late"])
    assert readiness(service).status_code == 503
    service.keys.keys["late"] = replace(service.keys.keys["acme-main"], key_id="late")
    assert readiness(service).status_code == 200
    assert "reasons" not in readiness(service).json()
    del service.keys.keys["late"]  # of one tenant: the others' requests go on
    assert readiness(service).status_code == 200


def test_keys_that_are_not_read_yet_are_no_missing_key() -> None:
    service = build_service(FakeGenerator(), default_keys=["nokey"])
    service.keys.ready = False
    with capture_logs() as logs:
        answer = readiness(service).json()
    assert (answer["checks"]["keys"], answer["checks"]["default_key"], logs) == (False, False, [])
    assert answer["reasons"] == {"default_key": "the keys are not read yet"}


def test_a_service_without_default_keys_has_no_such_check() -> None:
    service = build_service(FakeGenerator(), default_keys=[])
    assert readiness(service).json()["checks"] == {"models": True, "keys": True}
