"""A case says what was asked and answered, is refused once a byte changed, and is kept for some people."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tests.unit.detect.callers import known
from tests.unit.detect.served import served
from ttmark.detect_service.cases.case_service import CaseService, KeptCases
from ttmark.detect_service.cases.case_store import CaseRoom, SqliteCases
from ttmark.detect_service.cases.case_writer import page_around
from ttmark.services.cli.main import app
from ttmark.services.detection_stores import open_kept_cases
from ttmark.services.settings.cases_and_jobs import CaseSettings
from ttmark.services.startup import StartupError
from ttmark.shared.cases.signed_file import (
    CaseKey,
    CasePublicKey,
    CaseRefused,
    NotACaseKey,
    case_file,
    case_page,
    verified_case,
)
from ttmark.shared.vault.audit_events import AuditEvent
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import StoreUnavailable

KEY = CaseKey.generate()
CASE = {
    "format": "ttmark-case/1",
    "signing_key": KEY.public.name,
    "options": {"fpr": 1e-5, "keys": None},
    "result": {"verdict": "watermarked", "id": "<script>caf\u00e9</script>"},
}


def refused(content: bytes, key: CaseKey = KEY) -> bool:
    try:
        verified_case(content, key.public)
    except CaseRefused:
        return True
    return False


@pytest.mark.parametrize("kind", ["json", "html"])
def test_every_changed_byte_is_refused(kind: str) -> None:
    written = case_file(CASE, KEY) if kind == "json" else case_page("<!doctype html>\n", CASE, "<p>\n", KEY)
    content = written.encode()
    assert verified_case(content, KEY.public) == CASE
    for at in range(len(content)):
        for flip in (1, 0x20, 0x80):  # another digit, another case of a letter, another character
            changed = content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :]
            assert refused(changed), (at, changed[max(0, at - 20) : at + 20])
        assert refused(content[:at] + content[at + 1 :]), f"without byte {at}"
        assert refused(content[:at] + b" " + content[at:]), f"a space before byte {at}"
    assert refused(content[:-1])
    assert refused(content + b"\n")
    assert refused(content.replace(b"\n", b"\r\n"))


def test_another_spelling_key_or_kind_of_file_is_refused() -> None:
    document = json.loads(case_file(CASE, KEY))
    assert refused(json.dumps(document).encode())
    assert refused(case_file(CASE, KEY).replace("1e-05", "0.00001").encode())
    assert refused(case_file(CASE, KEY).replace('"fpr": 1e-05', '"fpr": 1, "fpr": 1e-05').encode())
    other = CaseKey.generate()
    with pytest.raises(
        CaseRefused, match=f"names the key {KEY.public.name}, and this is {other.public.name}"
    ):
        verified_case(case_file(CASE, KEY).encode(), other.public)
    assert refused(case_page("<!doctype html>\n", CASE, "", KEY).encode(), other)
    signature = json.loads(case_file(CASE, KEY))["signature"]
    page = case_page("<!doctype html>\n", CASE, "", KEY)
    assert refused(page[: -len(signature) - 6].encode() + f"{signature} -->\n".encode())
    lines = case_file(CASE, KEY).split("\n")
    for number, line in enumerate(lines):
        for changed in (line[2:], f"  {line}"):
            if changed != line:
                assert refused("\n".join([*lines[:number], changed, *lines[number + 1 :]]).encode()), line


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000, b"<!doctype html>"])
def test_what_is_no_case_is_refused(content: bytes) -> None:
    assert refused(content)


def test_keys_are_read_back_and_other_kinds_refused() -> None:
    assert CaseKey.from_pem(KEY.pem()).public.name == KEY.public.name
    assert CasePublicKey.from_pem(KEY.public.pem()).name == KEY.public.name
    for text in ("", KEY.public.pem()):
        with pytest.raises(NotACaseKey):
            CaseKey.from_pem(text)
    with pytest.raises(NotACaseKey):
        CasePublicKey.from_pem(KEY.pem())


async def ask(service, mode: str, text: str, **options: object) -> dict[str, object]:
    body = {"inputs": [{"id": "a", "text": text}], "evidence": "blocks", "case": True, **options}
    answer = await service.post(f"/v1/detect/{mode}", body)
    assert answer.status_code == 200, answer.text
    result: dict[str, object] = answer.json()["results"][0]
    return result | {"request_id": answer.json()["request_id"]}


@pytest.mark.parametrize("mode", ["direct", "aligned", "localized"])
async def test_a_case_holds_what_was_asked_and_answered(service, mode: str) -> None:
    text = service.marked("a-one")
    result = await ask(service, mode, text, keys=["a-one"])
    case = verified_case(str(result["case"]).encode(), service.case_key.public)
    assert case["route"] == f"/v1/detect/{mode}"
    assert case["options"]["keys"] == ["a-one"]
    assert case["request_id"] == result.pop("request_id")
    assert case["document"] == {"content": "text", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    assert case["result"] == {
        name: value for name, value in result.items() if name not in ("case", "evidence")
    }
    assert text not in json.dumps(case)


async def test_a_case_about_token_ids_has_the_hash_of_the_ids(service) -> None:
    body = {"inputs": [{"token_ids": [97, 98, 1]}], "keys": ["a-one"], "evidence": "blocks", "case": True}
    answer = await service.post("/v1/detect/direct", body)
    case = verified_case(answer.json()["results"][0]["case"].encode(), service.case_key.public)
    assert case["document"] == {"content": "token_ids", "sha256": hashlib.sha256(b"97,98,1").hexdigest()}


async def test_there_is_a_case_only_where_it_is_asked_for_and_asking_is_no_other_question(service) -> None:
    answer = await service.direct({"inputs": [{"text": "some text"}]})
    assert "case" not in answer.json()["results"][0]
    text = service.marked("a-one")
    with_case, without = await ask(service, "direct", text), await ask(service, "direct", text, case=False)
    del with_case["case"], with_case["request_id"], without["request_id"]
    assert with_case == without


async def test_a_page_shows_the_case_with_its_text(service) -> None:
    text = "a <b>bold</b> start " + service.marked("a-one", 400) + " & an end"
    result = await ask(service, "localized", text)
    answer = await service.post("/v1/cases/page", {"case": result["case"], "text": text})
    page = answer.json()["page"]
    assert "a &lt;b&gt;bold&lt;/b&gt; start" in page
    assert page.count("<mark>") == len(result["segments"])  # type: ignore[arg-type]
    assert result["message"]["headline"] in page  # type: ignore[index]
    assert "made with our key a-one, version 1" in page
    case = verified_case(page.encode(), service.case_key.public)
    assert case == verified_case(str(result["case"]).encode(), service.case_key.public)


@pytest.mark.parametrize(
    ("key", "named"),
    [({}, ""), ({"pool_key": 0}, ", pool key 0"), ({"pool_key": 2, "payload": 3}, ", payload 3")],
)
async def test_a_page_names_the_key_with_its_payload_or_key_of_the_pool(
    service, key: dict[str, int], named: str
) -> None:
    case = json.loads(str((await ask(service, "direct", service.marked("a-one")))["case"]))["case"]
    case["result"]["key"] = {"key_id": "main", "version": 2, **key}
    assert f"<dt>Key</dt><dd>main, version 2{named}</dd>" in page_around(case, None)[0]


async def test_no_page_is_made_of_a_foreign_case_or_another_text(service) -> None:
    own = (await ask(service, "direct", "some text"))["case"]
    for body, field in (
        ({"case": case_file(CASE, KEY)}, "case"),
        ({"case": own + "\n"}, "case"),  # type: ignore[operator]
        ({"case": own, "text": "another text"}, "text"),
    ):
        answer = await service.post("/v1/cases/page", body)
        assert (answer.status_code, answer.json()["param"]) == (422, field)
    answer = await service.post("/v1/cases/page", {"case": case_file({"a": "b" * 2**20}, KEY)})
    assert (answer.status_code, answer.json()["param"]) == (413, "case")


async def test_everybody_gets_the_public_key(service) -> None:
    answer = await service.client.get("/.well-known/ttmark-case-key")
    assert CasePublicKey.from_pem(answer.text).name == service.case_key.public.name


@pytest.mark.parametrize("content", [None, "nothing", KEY.public.pem()])
def test_a_service_does_not_start_with_a_key_that_cannot_sign(tmp_path: Path, content: str | None) -> None:
    assert CaseSettings(case_key_file=None).load_case_key() is None
    file = tmp_path / "case.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(StartupError, match="TTMARK_CASE_KEY_FILE: "):
        CaseSettings(case_key_file=file).load_case_key()


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["case", *arguments])
    return result.exit_code, result.output


def test_a_second_person_verifies_a_case(tmp_path: Path) -> None:
    secret, public, file, text = (tmp_path / name for name in ("key.pem", "pub.pem", "case.json", "text.txt"))
    assert invoke("new-key", str(secret))[0] == 0
    assert secret.stat().st_mode & 0o777 == 0o600
    public.write_text(invoke("public-key", str(secret))[1])
    key = CaseKey.from_pem(secret.read_text())
    text.write_bytes(b"first line\r\nsecond line")
    digest = hashlib.sha256(b"first line\nsecond line").hexdigest()
    shown = {
        "signing_key": key.public.name,
        "issued_at": "now",
        "request_id": "r",
        "release": "1",
        "route": "/v1/detect/direct",
    }
    case = CASE | shown | {"document": {"content": "text", "sha256": digest}}
    file.write_text(case_file(case, key))
    verify = ["verify", str(file), "--key", str(public), "--text", str(text)]
    code, output = invoke(*verify)
    assert (code, output.startswith("genuine")) == (0, True), output
    assert json.loads(invoke(*verify, "--json")[1])["case"] == case
    text.write_text("another text")
    assert invoke(*verify) == (
        1,
        f"ttmark: refused: the case is genuine, but about another text than {text}\n",
    )
    file.write_text(file.read_text().replace("watermarked", "not_detected"))
    code, output = invoke(*verify[:4])
    assert (code, output.startswith("ttmark: refused: it was not signed with the key")) == (1, True), output
    public.write_text("nothing")
    assert invoke(*verify[:4]) == (1, f"ttmark: {public}: not a public key in PEM\n")


FILE = case_file(CASE, KEY)


@dataclass
class Desk:
    """A client, and what the service leaves behind."""

    client: httpx.AsyncClient
    database: Path
    events: list[AuditEvent]
    store: SqliteCases

    async def ask(self, method: str, path: str = "", who: str = "mine", **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {who}"}
        return await self.client.request(method, f"/v1/cases{path}", headers=headers, **options)

    async def keep(self, case: str = FILE, who: str = "mine") -> str:
        response = await self.ask("POST", "", who, json={"case": case})
        assert response.status_code == 201, response.text
        assert response.headers["Location"] == f"/v1/cases/{response.json()['id']}"
        return str(response.json()["id"])


Open = Callable[..., Any]


@pytest.fixture
def open_desk(service, tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(*, keeps: bool = True, days: float = 2.0, **room: int) -> AsyncIterator[Desk]:
        events: list[AuditEvent] = []

        store = SqliteCases(tmp_path / "cases.db")
        limits = CaseRoom(**{"of_tenant": 20_000, "of_all": 50_000, **room})
        kept = KeptCases(store, KeyEncryptionKey(bytes(32)), days, limits, 5_000)
        parts = {"case_key": KEY, "kept_cases": kept if keeps else None}
        async with served(service.backend, known, options={"audit": events.append}, **parts) as client:
            yield Desk(client, tmp_path / "cases.db", events, store)
        await store.close()

    return opened


@pytest.fixture
async def desk(open_desk: Open) -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


async def test_a_case_is_read_as_it_was_stored(desk: Desk) -> None:
    case_id = await desk.keep()
    answer = await desk.ask("GET", f"/{case_id}")
    assert answer.json()["case"] == FILE
    assert verified_case(answer.json()["case"].encode(), KEY.public) == CASE
    assert answer.json()["expires_at"] - answer.json()["stored_at"] == pytest.approx(2 * 86_400)
    assert answer.headers["content-type"] == "application/json"  # what a name holds is no page
    listed = await desk.client.get("/v1/keys", headers={"Authorization": "Bearer mine"})
    assert listed.json()["case_days"] == 2


@pytest.mark.parametrize(
    ("maker", "statuses"),
    [
        ("mine", {"mine": 200, "second": 200, "verdict": 404, "stranger": 404}),
        ("verdict", {"verdict": 200, "verdict2": 404, "second": 200, "stranger": 404}),
    ],
)
async def test_only_the_tenant_sees_a_case_and_without_evidence_only_its_maker(desk, maker, statuses):
    case_id = await desk.keep(who=maker)
    for who, status in statuses.items():
        assert (await desk.ask("GET", f"/{case_id}", who)).status_code == status, who


async def test_only_who_stored_a_case_deletes_it_and_each_act_that_is_allowed_leaves_a_trace(desk: Desk):
    case_id = await desk.keep()
    for who, status in (("second", 200), ("stranger", 404)):
        assert (await desk.ask("GET", f"/{case_id}", who)).status_code == status, who
    for who, status in (("second", 403), ("verdict", 404), ("stranger", 404), ("mine", 204), ("mine", 404)):
        assert (await desk.ask("DELETE", f"/{case_id}", who)).status_code == status, who
    assert (await desk.ask("GET", f"/{case_id}")).status_code == 404
    traces = [(event.action, event.token_id, event.tenant, event.case_id) for event in desk.events]
    acts = (("store", "t1"), ("read", "t2"), ("delete", "t1"))
    assert traces == [(f"case.{act}", who, "a", case_id) for act, who in acts]
    assert all(event.request_id for event in desk.events)


async def test_ids_are_not_guessed(desk: Desk) -> None:
    ids = {await desk.keep() for _ in range(8)}
    assert len(ids) == 8
    assert all(len(case_id) == 32 for case_id in ids)
    case_id = ids.pop()
    guesses = [secrets.token_hex(16) for _ in range(200)]
    guesses += [case_id[:-1] + digit for digit in "0123456789abcdef" if digit != case_id[-1]]
    assert {(await desk.ask("GET", f"/{guess}")).status_code for guess in guesses} == {404}
    for odd in (case_id.upper(), case_id[:-1], f"{case_id}0", "..%2fkeys", "%00" * 32, "*" * 32, "page"):
        assert (await desk.ask("GET", f"/{odd}")).status_code in (404, 405, 422), odd


async def test_only_genuine_cases_of_some_size_are_kept(desk: Desk) -> None:
    page = case_page("<!doctype html>\n", CASE, "", KEY)  # genuine, but it may hold a text
    long = ("x" * 5_000, "\u00e9" * 2_500)  # bytes count, not characters
    strange = [FILE.replace("ttmark", "ttmarc"), FILE + " ", case_file(CASE, CaseKey.generate()), page]
    for case, status in (
        *((one, 422) for one in (*strange, "{}", "", "{" * 4_000)),
        *((case_file({**CASE, "padding": padding}, KEY), 413) for padding in long),
    ):
        answer = await desk.ask("POST", json={"case": case})
        assert (answer.status_code, answer.json()["param"]) == (status, "case"), case[:99]
    assert desk.events == []


async def test_a_greedy_tenant_fills_its_own_room(open_desk: Open) -> None:
    async with open_desk(of_tenant=2_000, of_all=3_000) as desk:
        kept = []
        while (answer := await desk.ask("POST", json={"case": FILE})).status_code == 201:
            kept.append(answer.json()["id"])
        assert answer.status_code == 429
        assert "The tenant's cases may take 2000 bytes" in answer.json()["detail"]
        await desk.keep(who="stranger")
        await desk.ask("DELETE", f"/{kept[0]}")
        await desk.keep()


async def test_an_expired_case_is_gone_before_it_is_swept(open_desk: Open) -> None:
    async with open_desk(days=1e-9) as desk:
        case_id = await desk.keep()
        assert (await desk.ask("GET", f"/{case_id}")).status_code == 404
        assert (await desk.ask("DELETE", f"/{case_id}")).status_code == 404
        assert await desk.store.get("a", case_id) is not None
        assert await desk.store.expire(4e9) == 1


async def test_a_store_sees_no_case_and_what_was_altered_or_moved_is_not_shown(desk: Desk) -> None:
    first, second = await desk.keep(), await desk.keep(case_file({**CASE, "number": 2}, KEY))
    files = [*desk.database.parent.glob("cases.db*")]
    assert not any(part in file.read_bytes() for file in files for part in (b"script", b"ttmark-case"))

    async def write(case_id: str, sealed: bytes) -> None:
        statement = "UPDATE cases SET sealed = ? WHERE case_id = ?"
        await desk.store._file.run(lambda connection: connection.execute(statement, (sealed, case_id)))

    kept = await desk.store.get("a", first)
    await write(second, kept.sealed)
    fields = json.loads(kept.sealed)
    fields["sealed"] = fields["sealed"][:-4] + "AAA="
    await write(first, json.dumps(fields).encode())
    for case_id in (first, second):
        assert (await desk.ask("GET", f"/{case_id}")).status_code == 503


async def test_no_case_is_said_to_be_kept_while_the_store_is_away(desk: Desk, monkeypatch) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(desk.store, "keep", away)
    assert (await desk.ask("POST", json={"case": FILE})).status_code == 503
    assert desk.events == []


async def test_by_default_nothing_is_kept(open_desk: Open) -> None:
    async with open_desk(keeps=False) as desk:
        for method, path, body in (("POST", "", {"case": FILE}), ("GET", f"/{'0' * 32}", None)):
            answer = await desk.ask(method, path, json=body)
            assert answer.status_code == 404
            assert "TTMARK_CASES_KEEP_DAYS" in answer.json()["detail"]
    assert open_kept_cases(CaseSettings(), None) is None  # type: ignore[arg-type]
    with pytest.raises(StartupError, match="needs TTMARK_CASE_KEY_FILE"):
        open_kept_cases(CaseSettings(cases_keep_days=1), None)  # type: ignore[arg-type]


async def test_sweeping_outlives_a_store_that_is_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def away(_: float) -> int:
        asked.append(1)
        raise asyncio.CancelledError if len(asked) == 3 else StoreUnavailable("the disk is full")

    monkeypatch.setattr("ttmark.detect_service.stored_records._EXPIRE_SECONDS", 0.0)
    monkeypatch.setattr(desk.store, "expire", away)
    kept = KeptCases(desk.store, KeyEncryptionKey(bytes(32)), 1, CaseRoom(1, 1), 1)
    with pytest.raises(asyncio.CancelledError):
        await CaseService(kept, [].append).expire()
    assert len(asked) == 3
