"""A Redis with the files of `deploy/redis` is killed or paused: what was written stays, and jobs end."""

import asyncio
import secrets
import time
from collections.abc import Iterator

import httpx
import pytest
import redis

from tests.contract.keys.faulty_store import KEK, PROFILE
from tests.contract.keys.secured_redis import SecuredRedis
from tests.harness.job_tenants import JobAsker, provision
from tests.harness.waiting import eventually
from tests.integration.detect.served import serving
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.keyring import KeyRing

DOCUMENTS = 120  # enough for a worker to be seen with a part
LEASE_SECONDS = 2
AWAY_SECONDS = 2.0


async def test_what_the_roles_wrote_outlasts_a_kill_of_the_server(secured: SecuredRedis) -> None:
    kept = []
    for _ in range(2):  # the second time a transaction is the first thing that the server writes
        key_id, store = f"k{secrets.token_hex(4)}", open_store(secured.url("operator"))
        await KeyRing(store, KEK).create(key_id, tenant="t", profile=PROFILE)
        token, _ = await TokenRegistry(store, KEK).create(tenant="t", scopes=[Scope.DETECT])
        kept.append((key_id, token))
        secured.server.kill()
        secured.server.start()
        for known_key, known_token in kept:
            assert known_key in [key.key_id for key in await KeyRing(store, KEK).list()]
            await TokenRegistry(store, KEK).authenticate(known_token)
        await store.close()


@pytest.fixture(scope="module")
def asker(secured: SecuredRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobAsker]:
    """Makes jobs at a detection service over that Redis."""
    folder = tmp_path_factory.mktemp("service")
    tokens = asyncio.run(provision(folder, secured.url("operator")))
    settings = {"TTMARK_STORE_URL": secured.url("detect"), "TTMARK_STATE": str(folder)}
    changed = (
        "from ttmark.detect_service.features.jobs.service import open_job_store\n"
        f"open_job_store.__kwdefaults__['lease_seconds'] = {LEASE_SECONDS}"
    )
    with (
        serving(folder, settings, changed=changed) as (port, _),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        yield JobAsker(client, tokens["dear"])


def is_claimed(secured: SecuredRedis) -> bool:
    """Whether a worker has a part."""
    with secured.client("detect") as client:
        try:
            return client.xpending("{ttmark}:jobs:parts:dear", "workers")["pending"] > 0
        except redis.ResponseError:  # no part yet
            return False


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", ["killed", "paused"])
def test_a_job_comes_to_its_end_though_redis_was_away(secured, asker, fault):
    text = "\n\n".join(read_human_texts(HUMAN_TEXTS_PATH))[:1_000]
    job = asker.make("combined", [text] * DOCUMENTS)
    eventually(lambda: is_claimed(secured))
    if fault == "killed":
        secured.server.kill()
        time.sleep(AWAY_SECONDS)
        secured.server.start()
    else:
        secured.server.pause()
        time.sleep(AWAY_SECONDS)
        secured.server.resume()
    eventually(lambda: asker.status(job)["status"] == "finished")
    done = asker.status(job)
    assert (done["answered"], done["failed"]) == (DOCUMENTS, 0)
