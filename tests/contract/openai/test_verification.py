"""`POST /v1/watermark/verify`: scope, limits, errors, and what a client that leaves ends."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.contract.openai.composed import build_service
from tests.contract.openai.test_engine_trouble import TROUBLE
from ttmark.gen_service.api.verifier import best_finding
from ttmark.services.cli.main import app
from ttmark.services.cli.verify import summary
from ttmark.shared.client import AsyncClient, Client
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.schemas.verification import VerificationResponse
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood
from ttmark.shared.watermark.likelihood.reading import Reading

PATH = "/v1/watermark/verify"
SAMPLING = {"model": "tiny", "top_k": 4, "temperature": 1.0}
WRITING = {**SAMPLING, "prompt": "Once", "max_tokens": 150, "ignore_eos": True, "return_token_ids": True}
IDS = list(range(60))
BODY = {**SAMPLING, "token_ids": IDS}
# The two routes that read texts: who may, a request, and how many readings run at once of it.
READING: dict[str, tuple[str, dict[str, Any], int]] = {
    "watermark/verify": ("detector", {"token_ids": IDS}, 1),
    "readings": ("reader", {"texts": ["abc"] * 9}, 4),
}


@pytest.fixture(scope="module")
def written(real: Any) -> list[int]:
    """A marked text, as token ids."""
    answer = real.http("author").post("/v1/completions", json=WRITING | {"seed": 3})
    ids: list[int] = answer.json()["choices"][0]["token_ids"]
    return ids


def _post(service: Any, token: str = "detector", **change: Any) -> httpx.Response:
    return service.post("watermark/verify", token, **BODY | change)


def test_a_marked_text_is_found_with_its_prompt_and_alone(real: Any, written: list[int]) -> None:
    alone = _post(real, token_ids=written).json()
    answer = _post(real, token_ids=written, prompt="Once").json()
    assert answer["verdict"] == alone["verdict"] == "watermarked"
    assert answer["key"] == {"key_id": "acme-main", "version": 3, "profile": answer["key"]["profile"]} | {
        "pool_key": None,
        "payload": None,
    }
    assert (answer["tokens"], answer["prompt_tokens"], alone["prompt_tokens"]) == (150, 4, 0)
    # acme-main and acme-spare; acme-disabled has no version to detect with, acme-other another tokenizer.
    assert answer["hypotheses"] == 2
    assert answer["log10_p"] < -5
    assert answer["p_value"] == pytest.approx(10 ** answer["log10_p"])
    assert 5 < answer["log10_e"] <= -answer["log10_p"]
    assert 0 < answer["scored_blocks"] <= 150


def test_the_answer_is_that_of_the_likelihood_ratio_with_what_the_model_says(real, written):
    """The text alone is read as one that follows nothing: its first token has no probability."""
    answer = _post(real, token_ids=written, prompt="Once").json()
    keys = [real.keys.keys[name] for name in ("acme-main", "acme-spare")]
    watermark = keys[0].profile.watermark()
    prf_keys = [version.prf_key for key in keys for version in key.detectable]
    without = detect_likelihood(watermark, prf_keys, written, rate=1e-5)
    assert answer["log10_p"] != pytest.approx(without.log10_p)
    assert answer["scored_blocks"] == without.scored
    certain = Reading(np.zeros(len(written)))
    assert best_finding(keys, written, certain, 1e-5).log10_p > answer["log10_p"]


def test_an_edited_text_is_found_at_any_boundary(real: Any, written: list[int]) -> None:
    edited = [*written[1:60], *written[63:]]
    answer = _post(real, token_ids=edited, prompt="Once").json()
    assert answer["verdict"] == "watermarked"


def test_both_clients_and_the_command_verify(real: Any, written: list[int], tmp_path: Path) -> None:
    marked = {**SAMPLING, "token_ids": written, "prompt": "Once"}
    with Client(real.url, "detector") as client:
        found = client.verify(marked)

    async def asynchronously() -> VerificationResponse:
        async with AsyncClient(real.url, "detector") as asynchronous:
            return await asynchronous.verify(marked)

    same = asyncio.run(asynchronously())
    assert found.key is not None
    assert (found.verdict, found.log10_p) == (same.verdict, same.log10_p)
    assert f"watermarked, key acme-main version 3: p-value {found.p_value:.2g}" in summary(found)
    text = "It was a dark and stormy night; the rain fell in torrents."
    file = tmp_path / "text.txt"
    file.write_text(text)
    options = [
        "--prompt", "Once", "--top-k", "4", "--model", "tiny", "--token", "detector", "--url", real.url,
    ]  # fmt: skip
    said = CliRunner().invoke(app, ["verify", str(file), *options])
    assert said.exit_code == 0, said.output
    assert said.output.startswith("not_detected: p-value ")
    told = CliRunner().invoke(app, ["verify", str(file), "--json", *options])
    assert (
        json.loads(told.output)["log10_p"]
        == _post(real, token_ids=None, text=text, prompt="Once").json()["log10_p"]
    )
    assert CliRunner().invoke(app, ["verify", str(file), "--chat"]).exit_code == 2


def test_messages_may_stand_before_a_text(real: Any) -> None:
    text = "It was a dark and stormy night; the rain fell in torrents."
    answer = _post(real, token_ids=None, text=text, messages=[{"role": "user", "content": "Go on"}]).json()
    assert answer["verdict"] == "not_detected"
    assert answer["key"] is None
    assert (answer["tokens"], answer["hypotheses"]) == (real.tokens(text), 2)
    assert answer["prompt_tokens"] > 5


@pytest.mark.parametrize("route", READING)
@pytest.mark.parametrize("token", ["author", "keyless"])
def test_without_the_scope_nothing_is_said(fake: Any, route: str, token: str) -> None:
    for other in {token, *(needed for needed, *_ in READING.values())} - {READING[route][0]}:
        answer = fake.post(route, other, **READING[route][1])
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(
    ("change", "status", "param", "words"),
    [
        ({"token_ids": IDS[:5]}, 400, "token_ids", "holds 5 tokens; with fewer than 6"),
        ({"token_ids": None, "text": "short"}, 400, "text", "holds 5 tokens"),
        ({"token_ids": [*IDS, 9999]}, 400, "token_ids", "below the vocabulary size"),
        ({"token_ids": IDS * 5}, 400, "token_ids", "tokens over"),
        ({"prompt": IDS * 4}, 400, "token_ids", "together"),
        ({"text": "both"}, 400, None, "exactly one of"),
        ({"prompt": "a", "messages": [{"role": "user", "content": "b"}]}, 400, None, "not both"),
        ({"temperature": 0}, 400, "temperature", "greater than 0"),
        ({"tempreature": 0.7}, 400, "tempreature", ""),
        ({"keys": ["globex-main"]}, 404, "keys[0]", "no such watermark key"),
        ({"keys": ["acme-other"]}, 400, "keys", "another tokenizer"),
        ({"model": "none"}, 404, "model", "no such model"),
        ({"model": "untold", "messages": [{"role": "user", "content": "b"}]}, 400, "messages", "template"),
    ],
)
def test_what_cannot_be_verified_is_refused_by_name(fake, change, status, param, words):
    answer = _post(fake, **change)
    error = answer.json()["error"]
    assert answer.status_code == status, answer.text
    assert words in error["message"]
    if param is not None:
        assert error["param"] == param


def test_more_hashing_than_a_request_may_ask_for_is_refused(fake, monkeypatch):
    monkeypatch.setattr("ttmark.gen_service.api.verifier.VerificationPlan.hashed_blocks", 10**9)
    answer = _post(fake)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_much_work")


@pytest.mark.parametrize(("trouble", "status", "code"), TROUBLE)
@pytest.mark.parametrize("route", READING)
def test_trouble_of_the_engine_is_an_http_error(fake, route, trouble, status, code):
    token, body, _ = READING[route]
    fake.generator.refusal = trouble
    answer = fake.post(route, token, **body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert fake.audit == []
    if route == "readings":
        outcome = {"outcome": "failed" if status >= 500 else "rejected"}
        assert fake.registry.get_sample_value("ttmark_gen_readings_total", outcome) >= 9


@pytest.mark.parametrize("route", READING)
def test_a_client_that_leaves_ends_the_readings(fake: Any, route: str) -> None:
    token, body, at_once = READING[route]
    fake.generator.pause = 60.0
    with pytest.raises(httpx.ReadTimeout):
        fake.http(token).post(f"/v1/{route}", json={"model": "tiny"} | body, timeout=0.5)
    deadline = time.monotonic() + 10
    while (fake.generator.running or not fake.generator.cancelled) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (fake.generator.cancelled, fake.generator.running) == (at_once, 0)


def test_the_audit_trail_says_which_keys_were_tried_on_how_much(fake: Any) -> None:
    answer = _post(fake).json()
    (event,) = fake.audit
    assert (event.action, event.route, event.token_id) == ("key.detect", PATH, "tok-detector")
    assert (event.keys, event.tokens) == (("acme-main/3", "acme-spare/3"), 60)
    assert event.verdicts == {answer["verdict"]: 1}
    assert event.request_id == answer["request_id"]


@pytest.mark.parametrize(
    ("route", "more", "tokens"),
    [("watermark/verify", {"prompt": [1, 2, 3]}, 63), ("readings", {"texts": ["abc", "de"]}, 5)],
)
async def test_an_allowance_is_asked_for_all_that_is_read_and_no_question_is_counted(
    fake, route, more, tokens
):
    taken: list[int] = []

    class Allowance:
        async def take(self, _: object, tokens: int) -> None:
            taken.append(tokens)
            if len(taken) > 60:
                raise TooManyRequests("too many", retry_after=1)

    token, body, _ = READING[route]
    transport = httpx.ASGITransport(build_service(fake.generator, allowance=Allowance()).app)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
        asked = {"model": "tiny"} | body | more
        answers = [await client.post(f"/v1/{route}", json=asked) for _ in range(61)]
    assert [answer.status_code for answer in answers] == [200] * 60 + [429]
    assert taken == [tokens] * 61
    assert len(fake.generator.readings) == 60 * len(more.get("texts", "x"))
