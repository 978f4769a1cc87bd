"""Mails that share a signature, sent to a service by a plain token, an evidence token and as a job."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.harness.job_tenants import provision
from tests.integration.detect.service_figures import serving
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH
from ttmark.shared.access.scopes import Scope
from ttmark.shared.client import Client
from ttmark.shared.schemas.detection import CombinedRequest, Document

pytestmark = pytest.mark.long

SIGNATURE = 24
RATE = 1e-5
PROFILE: dict[str, Any] = {"scheme": "gumbel", "context_width": 2, "pool": 16}  # the default of a key
SCOPES = {"plain": {Scope.DETECT}, "evidence": {Scope.DETECT, Scope.DETECT_EVIDENCE}, "job": {Scope.DETECT}}
SENT = [(60, 50), (60, 150), (5_000, 150)]
Ask = Callable[[list[str]], Counter[str]]


def mails(count: int, length: int) -> list[str]:
    """Different mails of so many words of prose, the last ones of which are one signature."""
    prose = "\n".join(read_human_texts(HUMAN_TEXTS_PATH)).split()
    signature = " ".join(prose[:SIGNATURE])
    step = (len(prose) - length) // count
    starts = range(SIGNATURE, SIGNATURE + step * count, step)
    return [f"{' '.join(prose[start:][: length - SIGNATURE])}\n-- \n{signature}" for start in starts]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ask]]:
    """How texts are asked about: what is said of them, counted."""
    folder = tmp_path_factory.mktemp("mails")
    tokens = asyncio.run(provision(folder, tenants=SCOPES, **PROFILE))
    with serving(folder) as (port, _), ExitStack() as stack:
        clients = {
            kind: stack.enter_context(Client(f"http://127.0.0.1:{port}", token, timeout=600))
            for kind, token in tokens.items()
        }

        def one_by_one(kind: str) -> Ask:
            def ask(text: str) -> str:
                request = CombinedRequest(inputs=[Document(text=text)], fpr=RATE)
                (result,) = clients[kind].detect(request).results
                return result.verdict

            return lambda texts: Counter(map(ask, texts))

        def as_a_job(texts: list[str]) -> Counter[str]:
            client = clients["job"]
            job = client.submit_job({"inputs": [{"text": text} for text in texts], "fpr": RATE})
            client.wait_for_job(job.id, poll_seconds=0.2)
            results = client.iter_job_results(job.id)
            return Counter(one.result.verdict if one.result else one.error.code for one in results)

        yield {"plain": one_by_one("plain"), "evidence": one_by_one("evidence"), "job": as_a_job}


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("way", SCOPES)
@pytest.mark.parametrize(("count", "length"), SENT)
def test_every_mail_is_answered(ways, way, count, length, record_result):
    said = ways[way](mails(count, length))
    print(f"{count} mails of {length} words, {way}: {dict(said)}")
    record_result(
        f"{count:,} mails of {length} words with one signature of {SIGNATURE}, at {RATE:g}, {way}",
        "each gets a verdict",
        ", ".join(f"{number:,} {verdict}" for verdict, number in said.items()),
    )
    assert said["not_detected"] + said["too_short"] + said["watermarked"] == count
    assert said["watermarked"] <= 1  # by chance
