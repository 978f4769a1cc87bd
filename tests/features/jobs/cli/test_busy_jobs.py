"""`ttmark jobs submit` to a service that is busy: it waits in sight, and says what to do when it does not."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from tests.unit.services.cli.conftest import Run
from ttmark.detect_service.features.jobs.commands import jobs
from ttmark.shared.client import client

JOB = {"id": "a" * 32, "status": "queued", "mode": "combined", "documents": 1, "answered": 0, "failed": 0}
JOB |= {"created_at": 1.0, "expires_at": 2.0}
MINUTE = "The access token's limit of documents per minute is reached."


class Service:
    """Refuses so often with 429, then takes the job."""

    def __init__(self) -> None:
        self.refusals, self.retry_after = 0, "1"
        self.keys: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers["Idempotency-Key"])
        if len(self.keys) > self.refusals:
            return httpx.Response(202, json=JOB)
        busy = {"title": "Too many", "detail": MINUTE}
        return httpx.Response(429, json=busy, headers={"Retry-After": self.retry_after})


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def submit(service: Service, run_against: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(client, "time", SimpleNamespace(**{**vars(client.time), "sleep": lambda _: None}))
    run = run_against(jobs, service, "jobs", "submit", "a.txt", "--token", "t")
    Path("a.txt").write_text("some text")
    return run


def test_a_busy_service_is_waited_for_with_a_line_for_each_wait(submit: Run, service: Service) -> None:
    service.refusals = 2
    result = submit()
    assert (result.exit_code, result.stdout) == (0, JOB["id"] + "\n")
    reason = MINUTE.removesuffix(".")
    assert result.stderr == f"ttmark: {reason}; trying again in 1 s\n" * 2
    assert len(set(service.keys)) == 1


@pytest.mark.parametrize(("options", "wait"), [((), 300), (("--wait", "20"), 20), (("--wait", "0"), 0)])
def test_a_wait_that_is_too_long_says_how_long_and_what_to_do(submit, service, options, wait):
    service.refusals, service.retry_after = 9, "3600"
    result = submit(*options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"ttmark: {MINUTE} The service can be asked again in 3600 s, and --wait is {wait}: give it more, or "
        "send fewer documents\n"
    )
    assert len(service.keys) == 1


def test_the_same_command_with_the_same_key_sends_it(submit: Run, service: Service) -> None:
    for _ in range(2):
        assert submit("--idempotency-key", "nightly-7").exit_code == 0
    assert service.keys == ["nightly-7"] * 2
    assert submit().exit_code == 0
    assert service.keys[2] not in (None, "nightly-7")


def test_a_wait_below_nothing_is_bad_usage(submit: Run, service: Service) -> None:
    assert submit("--wait", "-1").exit_code == 2
