"""Calls at the end of a job: signed, to listed hosts alone, repeated until they are taken."""

import base64
import hashlib
import hmac
import json
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.detect.test_job_calls import finish, jobs_with
from ttmark.detect_service.jobs.background import MOST_CALLS, JobCalls
from ttmark.detect_service.jobs.jobs import JobMetrics
from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.jobs.webhooks import Webhooks, secret_of, signature
from ttmark.services.runtime import StartupError
from ttmark.services.settings.cases_and_jobs import JobSettings

HOSTS = ("hooks.example.org", "inside:8080")
SECRET = bytes(range(32))
ADDRESS = "https://hooks.example.org/ttmark?x=1"


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The example that the libraries of https://www.standardwebhooks.com are tested with.
    secret = secret_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


ALLOWED = (
    f"{ADDRESS} HTTPS://Hooks.Example.org http://hooks.example.org:80/ http://inside:8080/a "
    "https://inside:8080/a"
)
REFUSED = (
    "http://inside/a https://hooks.example.org:8443/ https://hooks.example.org.evil.example/ "
    "https://evil.example/hooks.example.org https://hooks.example.org@evil.example/ "
    "https://user@hooks.example.org/ http://169.254.169.254/latest http://127.0.0.1:8001/ http://[::1]/ "
    "ftp://hooks.example.org/ file:///etc/passwd //hooks.example.org/ hooks.example.org http:// "
    "http://a:b:c https://hooks.example.org\\@evil.example/"
)


def test_only_listed_hosts_are_called() -> None:
    webhooks = Webhooks(HOSTS, SECRET)
    assert [address for address in ALLOWED.split() if not webhooks.allows(address)] == []
    assert [address for address in ["", *REFUSED.split()] if webhooks.allows(address)] == []


async def test_a_redirection_is_a_failure_and_is_not_followed() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(307, headers={"Location": "http://127.0.0.1/"})

    webhooks = Webhooks(HOSTS, SECRET, transport=httpx.MockTransport(answer))
    assert not await webhooks.call(ADDRESS, "job", b"{}")
    assert asked == [ADDRESS]
    assert not await webhooks.call("http://127.0.0.1/", "job", b"{}")
    assert asked == [ADDRESS]


def test_settings_need_a_secret_in_its_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert JobSettings().open_webhooks() is None
    monkeypatch.setenv("TTMARK_WEBHOOK_HOSTS", " hooks.example.org, inside:8080 ")
    assert JobSettings().webhook_hosts == HOSTS
    for secret in (None, "hunter2", "whsec_c2hvcnQ=", base64.b64encode(SECRET).decode()):
        if secret is not None:
            monkeypatch.setenv("TTMARK_WEBHOOK_SECRET", secret)
        with pytest.raises(StartupError) as refused:
            JobSettings().open_webhooks()
        assert "hunter2" not in str(refused.value)
    (tmp_path / "secret").write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")
    monkeypatch.delenv("TTMARK_WEBHOOK_SECRET")
    monkeypatch.setenv("TTMARK_WEBHOOK_SECRET_FILE", str(tmp_path / "secret"))
    assert JobSettings().open_webhooks() is not None


async def test_a_finished_job_is_told_of_until_somebody_hears_it(tmp_path: Path) -> None:
    now, heard, status = 1000.0, list[httpx.Request](), 500

    def answer(request: httpx.Request) -> httpx.Response:
        heard.append(request)
        return httpx.Response(status)

    webhooks = Webhooks(HOSTS, SECRET, transport=httpx.MockTransport(answer), now=lambda: now)
    store = SqliteJobs(tmp_path / "jobs.db", lease_seconds=30)
    registry = CollectorRegistry()
    calls = JobCalls(jobs_with(store, webhooks), JobMetrics(registry), now=lambda: now)

    await finish(store, "j1", "a", ADDRESS, now=now)
    assert await calls.call_once()
    assert not await calls.call_once()
    now, status = now + 11, 204
    assert await calls.call_once()
    now += 1e6
    assert not await calls.call_once()
    assert len(heard) == 2
    body = heard[1].content
    said = json.loads(body)
    assert (said["type"], said["data"]["id"], said["data"]["status"]) == ("job.finished", "j1", "finished")
    sent = heard[1].headers
    assert (sent["webhook-id"], sent["webhook-timestamp"]) == ("j1", "1011")
    expected = hmac.new(SECRET, b"j1.1011." + body, hashlib.sha256).digest()
    assert sent["webhook-signature"] == f"v1,{base64.b64encode(expected).decode()}"

    await finish(store, "j2", "a", ADDRESS, now=now)
    status = 500
    heard.clear()
    for _ in range(MOST_CALLS + 3):
        await calls.call_once()
        now += 1e5
    assert len(heard) == MOST_CALLS
    counts = [
        registry.get_sample_value("ttmark_job_calls_total", {"outcome": outcome})
        for outcome in ("taken", "failed", "given_up")
    ]
    assert counts == [1, 1 + MOST_CALLS - 1, 1]
    await store.close()
