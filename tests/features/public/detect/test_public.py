"""The public tier: what it answers, whom, and what it keeps to itself."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.features.public.detect.public_asker import BUDGET, PublicService, public_service
from tests.unit.detect_service.test_failing_documents import FAILING, SECRET, Break
from ttmark.detect_service.answer_timing import rest_of_step
from ttmark.detect_service.features.files.text.extraction import ExtractionLimits
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.public.settings import PublicSettings
from ttmark.detect_service.features.public.tier import PUBLIC_PATH
from ttmark.services.startup import StartupError
from ttmark.shared.access.scopes import Scope
from ttmark.shared.languages.words import ENGLISH
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.schemas.detection.public import TextProvenance
from ttmark.shared.signpost import DOCUMENT_PATH

HUMAN = "".join(random.Random(3).choices("abcdefghijklmnopqrstuvwxyz .,", k=1500))


@pytest.fixture
async def public(service: Any) -> AsyncIterator[PublicService]:
    async with public_service(service) as tier:
        yield tier


@pytest.fixture
async def open_house(service: Any) -> AsyncIterator[PublicService]:
    async with public_service(service, guests=True) as tier:
        yield tier


async def test_two_texts_with_one_verdict_get_the_same_bytes(service: Any, public: PublicService) -> None:
    """Not the number of tokens, not which key: tenant a has two."""
    for verdict, words, *pair in (
        ("found", "found", service.marked("a-one", 400), service.marked("a-two", 900)),
        ("not_found", "none", HUMAN, HUMAN[::-1][:1200]),
        ("too_short", "short", "a line", "another line, with more words in it"),
    ):
        answers = [await public.ask(text) for text in pair]
        assert answers[0].status_code == 200, answers[0].text
        body = answers[0].json()
        assert set(body) == {"verdict", "message"}
        assert set(body["message"]) == {"headline", "explanation", "caution"}
        assert (body["verdict"], body["message"]["caution"]) == (verdict, ENGLISH.say(f"{words}.caution"))
        assert answers[0].headers["cache-control"] == "no-store"
        assert answers[0].content == answers[1].content
        assert answers[0].headers.keys() == answers[1].headers.keys()
    assert ENGLISH.say("short.public") in answers[0].text


async def test_the_verdict_is_that_of_one_question_at_the_tier_s_rate(service: Any) -> None:
    names = {"watermarked": "found", "not_detected": "not_found", "too_short": "too_short"}
    async with public_service(service, None, rate=1e-2) as public:
        for tokens in (12, 24, 40, 60, 90, 140):
            text = service.marked("a-one", tokens)
            result = await service.one("combined", text, "verdict", fpr=1e-2)
            assert (await public.ask(text)).json()["verdict"] == names[result.verdict]


async def test_keys_of_another_tenant_are_not_asked(service: Any, public: PublicService) -> None:
    assert (await public.ask(service.marked("b-one", 400))).json()["verdict"] == "not_found"


async def test_evidence_beside_the_scope_changes_nothing(service: Any, public: PublicService) -> None:
    everything = await public.new_token(*Scope)
    text = service.marked("a-one", 400)
    assert (await public.ask(text, token=everything)).content == (await public.ask(text)).content
    assert {len(event.said.get("verdicts") or {}) for event in public.audited} == {1}
    assert {event.said.get("route") for event in public.audited} == {PUBLIC_PATH}


@pytest.mark.parametrize("tenant", ["empty", "c"])
async def test_a_tenant_without_a_key_that_can_be_asked_names_none(service: Any, tenant: str) -> None:
    async with public_service(service, tenant=tenant) as public:
        response = await public.ask("a text")
    assert (response.status_code, response.json()["code"]) == (503, "no_usable_key")
    assert "foreign" not in response.text


async def test_too_much_work_says_nothing_of_the_keys(service: Any) -> None:
    narrow = replace(service.backend, max_request_blocks=900)
    short = replace(service.backend, max_document_tokens=10)
    for backend in (narrow, short):
        async with public_service(service, backend=backend) as public:
            response = await public.ask("a text of some words")
        assert response.status_code == 413
        assert response.json()["detail"] == "The text is too long."


async def test_the_worst_that_may_be_sent(service: Any) -> None:
    backend = replace(service.backend, max_document_tokens=100_000)
    taken = ("", "\U0001f600" * 20_000, "\u0000" * 20_000, "a\u0323\u0323 " * 5_000)
    others = ({"fpr": 0.1}, {"keys": ["a-one"]}, {"evidence": "blocks"})
    bodies: list[tuple[object, int]] = [
        *(({"text": text}, 200) for text in taken),
        ({"text": "a" * 20_001}, 413),
        ({"text": None}, 422),
        *(({"text": "a", **other}, 422) for other in others),
        *((body, 422) for body in ({"inputs": [{"text": "a"}]}, {"token_ids": [1]}, [], None, "a")),
    ]
    much = {f"{who}_words": 10**6 for who in ("address", "token", "tenant")}
    budget = replace(BUDGET, **much, address_requests=0)
    async with public_service(service, budget, backend=backend) as public:
        headers = {"Authorization": f"Bearer {public.token}"}
        for body, status in bodies:
            response = await public.send("POST", PUBLIC_PATH, json=body, headers=headers)
            assert response.status_code == status, (str(body)[:99], response.text[:300])


async def test_a_body_that_is_larger_than_any_text_is_not_read(public: PublicService) -> None:
    headers = {"Authorization": f"Bearer {public.token}", "Content-Type": "application/json"}
    for body in (b'{"text": "' + b"a" * 300_000 + b'"}', b'{"text": "a"' + b" " * 300_000 + b"}"):
        assert (await public.send("POST", PUBLIC_PATH, content=body, headers=headers)).status_code == 413
    nested = b'{"text": ' + b"[" * 5 + b"]" * 5 + b"}"
    assert (await public.send("POST", PUBLIC_PATH, content=nested, headers=headers)).status_code == 413


async def test_the_document_says_how_to_ask(service: Any, public: PublicService) -> None:
    response = await public.send("GET", DOCUMENT_PATH, headers={"Host": "evil.example"})
    document = TextProvenance.model_validate_json(response.content, strict=False)
    assert "evil" not in response.text
    assert (document.endpoint, document.scope) == (PUBLIC_PATH, "detect:public")
    assert document.token_required
    assert document.false_alarm_rate == 1e-5
    assert document.limits.characters == 20_000
    assert document.case_key is None
    for path in (document.page, document.description):
        assert (await public.send("GET", path)).status_code == 200
    answer = await public.send(
        "POST", document.endpoint, json={"text": "a"}, headers={"Authorization": f"Bearer {public.token}"}
    )
    assert answer.status_code == 200


async def test_nothing_of_it_is_there_unless_it_is_on(service: Any) -> None:
    for path in (DOCUMENT_PATH, "/check", "/check/check.js"):
        assert (await service.client.get(path)).status_code == 404
    assert (await service.client.post(PUBLIC_PATH, json={"text": "a"})).status_code == 401
    registry = service.authenticate.__self__
    token, _ = await registry.create(tenant="a", scopes={Scope.DETECT_PUBLIC})
    headers = {"Authorization": f"Bearer {token}"}
    assert (await service.client.post(PUBLIC_PATH, json={"text": "a"}, headers=headers)).status_code == 404
    assert PUBLIC_PATH not in (await service.client.get("/openapi.json")).json()["paths"]


async def test_people_without_a_token_are_answered_where_the_operator_says_so(open_house, public):
    assert (await open_house.ask("a text", token=None)).json()["verdict"] == "too_short"
    assert open_house.audited[-1].said.get("tenant") == "a"
    refused = await public.ask("a text", token=None)
    assert refused.status_code == 401
    document = (await open_house.send("GET", DOCUMENT_PATH)).json()
    assert not document["token_required"]
    assert document["limits"]["words_per_day_without_token"] == 10_000


async def test_a_bad_header_is_not_the_absence_of_one(open_house: PublicService) -> None:
    for value in ("", "Bearer", "Bearer ", "Basic YTpi", "Bearer wrong"):
        response = await open_house.ask("a text", token=None, Authorization=value)
        assert response.status_code == 401, value


async def test_guests_get_into_no_other_route(open_house: PublicService) -> None:
    others = [
        PUBLIC_PATH + "/../direct",
        "/v1/detect",
        "/v1/detect/",
        "/v1/detect/direct/",
        "/v1/detect/Public",
    ]
    posted = [("POST", path) for path in (*others, "//v1/detect/public/../keys")]
    for method, path in (*posted, ("GET", PUBLIC_PATH), ("PUT", PUBLIC_PATH), ("GET", "/v1/keys")):
        response = await open_house.send(method, path, json={"text": "a"})
        assert response.status_code in (401, 404), (method, path)


async def test_whatever_the_public_token_allows_a_guest_has_one_scope(service: Any) -> None:
    async with public_service(service, guests=True, guest_scopes=tuple(Scope)) as public:
        assert set((await public.ask(service.marked("a-one", 400), token=None)).json()) == {
            "verdict",
            "message",
        }
        assert (await public.send("GET", "/v1/keys")).status_code == 401
    async with public_service(service, guests=True, guest_scopes=(Scope.DETECT,)) as public:
        assert (await public.ask("a text", token=None)).status_code == 403


async def test_the_token_of_guests_ends_when_it_is_revoked(open_house: PublicService) -> None:
    await open_house.registry.revoke(open_house.token.split("_")[1])
    assert (await open_house.ask("a text", token=None)).status_code == 401


@pytest.mark.parametrize("taken", [0.0, 1e-9, 0.003, 0.0999, 0.1, 0.1001, 3.14])
def test_answers_leave_at_multiples_of_a_step(taken: float) -> None:
    leaves = taken + rest_of_step(taken, 0.1)
    assert leaves == pytest.approx(0.1 * round(leaves / 0.1))
    assert 0 <= leaves - taken <= 0.1


async def test_a_manifest_is_said_and_is_no_part_of_the_text(service: Any) -> None:
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    marked = service.marked("a-one", 400)
    async with ExtractionWorkers(ExtractionLimits(workers=1)) as workers:
        examiner = ManifestExaminer(workers, service.authority.root.decode())
        async with public_service(service, examiner=examiner) as public:
            alone = (await public.ask(HUMAN + signer.wrapper(HUMAN, model="smollm2"))).json()
            beside = (await public.ask(marked + signer.wrapper(marked, model="smollm2"))).json()
            changed = (await public.ask(f"x{HUMAN}" + signer.wrapper(HUMAN, model="smollm2") + "y")).json()
            plain = (await public.ask(HUMAN)).json()
            document = TextProvenance.model_validate((await public.send("GET", DOCUMENT_PATH)).json())
    assert (alone["verdict"], alone["basis"]) == ("not_found", "metadata")
    assert alone["message"]["headline"] == "A signed manifest says that a model wrote this text"
    assert (beside["verdict"], "basis" in beside) == ("found", False)
    assert "verifies and says that smollm2 wrote this text" in beside["message"]["explanation"]
    assert (plain["verdict"], "basis" in plain) == ("not_found", False)
    assert "C2PA" not in plain["message"]["explanation"]
    assert "C2PA" in changed["message"]["explanation"]
    assert document.bases == ["watermark", "foreign_watermark", "metadata"]


async def test_the_public_is_told_that_nothing_is_known(service, break_at: Break) -> None:
    async with public_service(service) as public:
        break_at("detect_service.normalization.normalizer:TextNormalizer.readings")
        answer = await public.ask(FAILING)
    assert answer.status_code == 200
    assert answer.json()["verdict"] == "not_examined"
    assert answer.json()["message"]["headline"] == "Not examined"
    assert SECRET not in answer.text


def test_a_rate_of_nothing_is_refused_in_a_short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_PUBLIC_FPR", "0")
    with pytest.raises(StartupError, match=r"^TTMARK_PUBLIC_FPR: .{,100}$"):
        PublicSettings()
