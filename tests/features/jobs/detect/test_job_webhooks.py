"""Calls at the end of a job: signed, to listed hosts alone, repeated until taken; nobody waits for them."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from tests.harness.waiting import until
from tests.unit.detect_service.callers import once
from ttmark.detect_service.features.jobs.background import MOST_CALLS, TENANTS_AT_ONCE, JobCalls, JobExpiry
from ttmark.detect_service.features.jobs.job_service import JobMetrics
from ttmark.detect_service.features.jobs.job_store import JobRecord, PartAnswer, StoreLimits
from ttmark.detect_service.features.jobs.sealed_jobs import JobHead, Jobs, seal_head
from ttmark.detect_service.features.jobs.settings import JobSettings
from ttmark.detect_service.features.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.features.jobs.webhooks import Webhooks, secret_of, signature
from ttmark.services.startup import StartupError
from ttmark.shared.access.scopes import Principal
from ttmark.shared.schemas.detection.jobs import JobOptions
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable

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
    "http://a:b:c https://hooks.example.org\\@evil.example/ http://xn--localhost:9211/ http://xn--/ "
    "http://a.xn--0/"
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
    for secret in ("", "whsec_c2hvcnQ=", base64.b64encode(SECRET).decode()):
        monkeypatch.setenv("TTMARK_WEBHOOK_SECRET", secret)
        with pytest.raises(StartupError):
            JobSettings().open_webhooks()
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
    assert await once(calls.due, calls.call)
    assert not await once(calls.due, calls.call)
    now, status = now + 11, 204
    assert await once(calls.due, calls.call)
    now += 1e6
    assert not await once(calls.due, calls.call)
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
        await once(calls.due, calls.call)
        now += 1e5
    assert len(heard) == MOST_CALLS
    counts = [
        registry.get_sample_value("ttmark_job_calls_total", {"outcome": outcome})
        for outcome in ("taken", "failed", "given_up")
    ]
    assert counts == [1, 1 + MOST_CALLS - 1, 1]
    await store.close()


KEK = KeyEncryptionKey(bytes(32))
DEADLINE = 1.5
DRIP_SECONDS = 0.2  # well within any limit for a single read
PATIENCE = 20.0


class Receiver:
    """Counts calls; drips the head of an answer for ever, or takes the message."""

    def __init__(self, *, drips: bool) -> None:
        self._drips = drips
        self.calls = self.open = self.most_open = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[tuple["Receiver", str]]:
        """It, and its host and port."""
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            yield self, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
            writer.write(b"HTTP/1.1 204 No Content\r\n")
            while self._drips and not await _left_within(DRIP_SECONDS, reader):
                writer.write(b"X")
            writer.write(b"\r\n")
        finally:
            self.open -= 1
            writer.close()


async def _left_within(seconds: float, reader: asyncio.StreamReader) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await reader.read()
            return True
    return False


@pytest.fixture
async def dripping() -> AsyncIterator[tuple[Receiver, str]]:
    async with Receiver(drips=True).listening() as both:
        yield both


@pytest.fixture
async def good() -> AsyncIterator[tuple[Receiver, str]]:
    async with Receiver(drips=False).listening() as both:
        yield both


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteJobs]:
    store = SqliteJobs(tmp_path / "jobs.db", lease_seconds=30)
    yield store
    await store.close()


def jobs_with(store: SqliteJobs, webhooks: Webhooks) -> Jobs:
    async def nobody(_: str) -> Principal:
        raise AssertionError

    return Jobs(store, KEK, nobody, webhooks=webhooks)


@asynccontextmanager
async def calling(store: SqliteJobs, *hosts: str, expiring: bool = False) -> AsyncIterator[None]:
    """Calls for the jobs of a store at the hosts meanwhile, and, where said, forgets those that expire."""
    jobs = jobs_with(store, Webhooks(hosts, bytes(32), seconds=DEADLINE))
    metrics = JobMetrics(CollectorRegistry())
    kinds = (JobCalls, JobExpiry) if expiring else (JobCalls,)
    works = [asyncio.create_task(kind(jobs, metrics).run()) for kind in kinds]
    try:
        yield
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


async def finish(
    store: SqliteJobs, job_id: str, tenant: str, webhook: str, *, expires_at: float = 4e9, now: float = 0
) -> None:
    """Makes a job of one document and answers it."""
    options = JobOptions(mode="direct", webhook=webhook)
    head = JobHead(token_id="t", created_at=1.0, part_documents=1, options=options)
    sealed, _ = await seal_head(KEK, job_id, head)
    job = JobRecord(job_id, tenant, sealed, 1, 1, 4e9)
    await store.create(job, [b"x"], StoreLimits(99, 10**6, 10**8))
    claim = await store.claim("w")
    await store.answer(claim, PartAnswer(b"r", 1, 0, now or time.time(), expires_at, calls=True))


@pytest.mark.long
async def test_receivers_that_drip_stop_neither_the_calls_of_others_nor_the_end_of_jobs(
    store: SqliteJobs, dripping: tuple[Receiver, str], good: tuple[Receiver, str]
) -> None:
    (bad, bad_host), (taker, good_host) = dripping, good
    for number in range(3 * TENANTS_AT_ONCE):
        await finish(store, f"a{number}", "a", f"http://{bad_host}/finished")
    await finish(store, "b1", "b", f"http://{good_host}/finished")
    await finish(store, "c1", "c", f"http://{good_host}/finished", expires_at=time.time() - 1)

    async def is_gone() -> bool:
        return await store.get("c", "c1") is None

    async with calling(store, bad_host, good_host, expiring=True):
        began = time.monotonic()
        await until(lambda: taker.calls == 1)
        await until(is_gone)
        assert time.monotonic() - began < PATIENCE / 2
        await until(lambda: bad.calls >= 3)
        assert bad.most_open == 1
    await until(lambda: bad.open == 0)


async def test_forgetting_jobs_outlives_a_store_that_is_away(store: SqliteJobs, monkeypatch) -> None:
    asked = []

    async def away(_: float) -> int:
        asked.append(1)
        raise asyncio.CancelledError if len(asked) == 3 else StoreUnavailable("the disk is full")

    monkeypatch.setattr("ttmark.detect_service.features.jobs.background._EXPIRE_SECONDS", 0.0)
    monkeypatch.setattr(store, "expire", away)
    with pytest.raises(asyncio.CancelledError):
        await JobExpiry(jobs_with(store, Webhooks([], bytes(32))), JobMetrics(CollectorRegistry())).run()
    assert len(asked) == 3


async def test_several_tenants_are_called_at_once_and_those_beyond_soon(store, dripping, good):
    (bad, bad_host), (taker, good_host) = dripping, good
    for number in range(TENANTS_AT_ONCE + 2):
        await finish(store, f"job{number}", f"tenant{number}", f"http://{bad_host}/finished")
    await finish(store, "b1", "b", f"http://{good_host}/finished")
    async with calling(store, bad_host, good_host):
        await until(lambda: bad.open == TENANTS_AT_ONCE)
        assert taker.calls == 0
        await until(lambda: taker.calls == 1)
        assert bad.most_open == TENANTS_AT_ONCE
    await until(lambda: bad.open == 0)
