"""A case says what was asked and answered, and is refused once a byte changed."""

import hashlib
import json
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.detect_service.test_failing_documents import FAILING, SECRET, WHY, named
from tests.unit.detect_service.test_languages import HEADLINES, OTHERS, detected
from tests.unit.detect_service.test_openapi import validator_of
from tests.unit.detect_service.test_voices import FOUND, mail
from ttmark.detect_service.features.cases.case_writer import page_around
from ttmark.services.cli.main import app
from ttmark.shared.signed_files.signed_file import (
    CaseKey,
    CasePublicKey,
    CaseRefused,
    NotACaseKey,
    case_file,
    case_page,
    verified_case,
)

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


@pytest.mark.parametrize("odd", [b"[" * 100_000, b'{"a": \xff}'], ids=["nested without end", "no text"])
def test_a_signed_page_of_an_odd_document_is_refused(odd: bytes) -> None:
    page = b'<!doctype html>\n<script type="application/json" id="case">' + odd + b"</script>"
    signature = KEY.sign(b"ttmark case page\0" + page).hex().encode()
    assert refused(page + b"<!-- ttmark-signature " + signature + b" -->\n")


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
        name: value for name, value in result.items() if name not in ("case", "evidence", "id")
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
    assert "less sure" not in page
    assert result["message"]["headline"] in page  # type: ignore[index]
    assert "made with our key a-one, version 1" in page
    case = verified_case(page.encode(), service.case_key.public)
    assert case == verified_case(str(result["case"]).encode(), service.case_key.public)
    case["result"]["segments"][0]["log10_e_value"] = -4.9
    assert "version 1, by itself less sure than the rate" in page_around(case, None)[0]


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


async def test_what_the_sender_chose_is_shown_as_its_choice_or_not_signed(service, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(service.case_key.public.pem())
    body = {"inputs": [{"id": "as the board found", "text": "a text"}], "keys": ["a-two"], "case": True}
    for given, shown in (({"X-Request-ID": "approved"}, "approved, as its sender named it"), ({}, "req-")):
        answer = await service.client.post("/v1/detect", json=body, headers=service.headers() | given)
        case = answer.json()["results"][0]["case"]
        page = (await service.post("/v1/cases/page", {"case": case})).json()["page"]
        (tmp_path / "case.json").write_text(case)
        verified = invoke("verify", str(tmp_path / "case.json"), "--key", str(tmp_path / "key.pem"))[1]
        assert "as the board found" not in case + page
        assert f"<dt>Request</dt><dd>{shown}" in page
        assert f"request {shown}" in verified
        assert ("as its sender" in page) is ("as its sender" in verified) is bool(given)
        assert 'keys ["a-two"]' in unescape(page)
        assert 'keys ["a-two"]' in verified


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
    empty, description = {"case": ""}, (await service.client.get("/openapi.json")).json()
    assert (await service.post("/v1/cases/page", empty)).status_code == 422
    assert not validator_of(description, "CasePageRequest").is_valid(empty)


@pytest.mark.parametrize("marked", FOUND)
async def test_a_case_says_whose_words_carry_the_mark(service, marked: tuple[bool, bool]) -> None:
    result = await service.one("combined", mail(service, *marked), keys=["a-one"], fpr=1e-5, case=True)
    assert json.loads(result.case)["case"]["result"]["voice"] == FOUND[marked]


async def test_everybody_gets_the_public_key(service) -> None:
    answer = await service.client.get("/.well-known/ttmark-case-key")
    assert CasePublicKey.from_pem(answer.text).name == service.case_key.public.name


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
    shown = {"signing_key": key.public.name, "issued_at": "now", "request_id": "r", "release": "1"}
    document = {"content": "text", "sha256": digest}
    case = CASE | shown | {"route": "/v1/detect/direct", "document": document}
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
    file.write_text(case_file(case | {"route": "\x1b[31m" + "x" * 9_999, "issued_at": "\u202e"}, key))
    output = invoke(*verify[:4])[1]
    assert (output.isascii(), "\x1b" in output, len(output) < 3_000) == (True, False, True), (
        "a signer's words"
    )
    nested = json.loads("[" * 400 + "]" * 400)
    for odd in ({"options": {"fpr": "low"}}, {"result": []}, {"document": None}, {"more": nested}):
        file.write_text(case_file(case | odd, key))
        said = "ttmark: it is signed, but does not hold what such a file holds\n"
        assert invoke(*verify[:4], "--json") == (1, said), odd
    file.write_text(case_file(case, key).replace("watermarked", "not_detected"))
    code, output = invoke(*verify[:4])
    assert (code, output.startswith("ttmark: refused: it was not signed with the key")) == (1, True), output
    public.write_text("nothing")
    assert invoke(*verify[:4]) == (1, f"ttmark: {public}: not a public key in PEM\n")


async def test_a_case_that_cannot_be_written_ends_its_document_alone(service, desk, break_at) -> None:
    break_at("detect_service.features.cases.case_writer:content_hash")
    texts = [named(service.marked("a-one", 300), "a"), named(FAILING, SECRET), named("a cat " * 60, "b")]
    first, failed, last = (await desk.ask(texts, case=True)).json()["results"]
    assert (first["verdict"], failed["verdict"]) == ("watermarked", "not_examined")
    assert (bool(first["case"]), "case" in failed, bool(last["case"])) == (True, False, True)
    assert failed["error"] == WHY


@pytest.mark.parametrize("language", OTHERS)
async def test_a_case_is_in_the_language_of_its_answer(service, language: str) -> None:
    body = {"inputs": [{"text": service.marked("a-one", 400)}], "case": True}
    [result] = await detected(service, body, f"{language}-XX, en;q=0.5")
    case = verified_case(result["case"].encode(), service.case_key.public)
    assert case["result"]["message"] == result["message"]
    page = (await service.post("/v1/cases/page", {"case": result["case"]})).json()["page"]
    assert f'<div lang="{language}"><h1>{HEADLINES[language]}' in page
