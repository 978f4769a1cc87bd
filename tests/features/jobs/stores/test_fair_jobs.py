"""One tenant has jobs with all the work in the world; another's job hardly notices (`-s`: seconds)."""

import asyncio
import time

import httpx
import pytest

from tests.harness.job_tenants import JobAsker, provision
from tests.integration.detect.served import serving
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH

pytestmark = pytest.mark.long

DOCUMENTS = 100
DEAR_JOBS = 6
DEAR_DOCUMENTS = 5
DEAR_CHARACTERS = 380_000
MOST_GROWTH = 3
ROUNDS = 2


# That both stores let tenants take turns is tested without a service, too.
@pytest.mark.parametrize(
    "store_url", [pytest.param("sqlite", marks=pytest.mark.slow), "redis"], indirect=True
)
@pytest.mark.timeout(900)
def test_a_job_is_done_soon_beside_one_with_all_the_work_in_the_world(tmp_path, store_url, record_result):
    tokens = asyncio.run(provision(tmp_path, store_url))
    human = "\n\n".join(read_human_texts(HUMAN_TEXTS_PATH))
    texts = [human[1_500 * number :][:1_500] for number in range(DOCUMENTS)]
    with (
        serving(tmp_path, {"TTMARK_STORE_URL": store_url}) as (port, _),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client,
    ):
        dear, small = (JobAsker(client, tokens[tenant]) for tenant in ("dear", "small"))
        idle = [small.seconds(texts) for _ in range(ROUNDS)]
        long = [(human * 3)[number:][:DEAR_CHARACTERS] for number in range(DEAR_DOCUMENTS)]
        jobs = [dear.make("localized", long) for _ in range(DEAR_JOBS)]
        time.sleep(2)
        busy = [small.seconds(texts) for _ in range(ROUNDS)]
        left = {dear.status(job)["status"] for job in jobs} - {"finished"}
    kind = store_url.partition(":")[0]
    measured = f"{kind}: {max(idle):.1f} s alone, {max(busy):.1f} s beside it, the slower of {ROUNDS}"
    print(measured, [round(seconds, 2) for seconds in idle], [round(seconds, 2) for seconds in busy])
    record_result(
        f"a job of {DOCUMENTS} documents beside another tenant's of {DEAR_JOBS * DEAR_DOCUMENTS} long ones",
        f"done within {MOST_GROWTH} times what it takes alone",
        measured,
    )
    assert max(busy) <= MOST_GROWTH * max(idle)
    assert left  # there was work all the time
