"""`POST /v1/content_provenance_checks`: a file is one request, by OpenAI's own client and by ours."""

import asyncio
import json
import socket
import subprocess
from typing import Any

import httpx2
import openai
import pytest
import uvicorn
from openai.types import content_provenance_check

from tests.harness.forms import END, FORM, PATHS, field
from tests.harness.outside_packages import with_npm
from tests.harness.set_pages import FILES, as_mail
from tests.unit.detect_service.conftest import HUMAN, Service
from tests.unit.detect_service.foreign_keys import Foreign, vllm_text
from tests.unit.detect_service.foreign_keys import foreign as foreign  # a fixture
from ttmark.shared.manifests.signer import ManifestSigner

PATH = "/v1/content_provenance_checks"
TYPE = FORM["Content-Type"]


def client_of(service: Service) -> openai.AsyncOpenAI:
    """For a token that sees verdicts alone."""
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(service.client._transport.app))
    key = service.tokens["verdict"]
    return openai.AsyncOpenAI(api_key=key, base_url="http://detect/v1", http_client=http, max_retries=0)


async def check(
    service: Service, content: bytes, name: str = "a.txt", token: str = "full", **more: Any
) -> Any:
    response = await service.send(PATH, name, content, token, **more)
    return response.json() | {"http": response.status_code}


@pytest.mark.parametrize("marked", [True, False])
async def test_openai_s_own_call_finds_the_mark_in_files_and_none_in_people_s(service, marked: bool) -> None:
    text = service.marked("a-one", 600, spaces="single") if marked else HUMAN * 6
    client = client_of(service)
    for name, made in FILES.items():
        named, raw = (name, made(text)), made(text)
        answers = [await client.content_provenance_checks.create(file=one) for one in (named, raw)]
        for answer in answers:  # bytes without a name are called `upload`
            c2pa, ours = answer.results
            assert isinstance(c2pa, content_provenance_check.ResultC2PA)
            assert (c2pa.type, c2pa.outcome, c2pa.validation_state) == ("c2pa", "not_detected", "not_present")
            assert ours.outcome == ("detected" if marked else "not_detected"), name
            assert (ours.type, ours.generated_at, ours.model) == ("text_watermark", None, None)
            assert (ours.issuer, ours.validation_state) == (None, "not_present")
            assert not hasattr(ours, "key")
            assert answer.object == "content_provenance_check"
            assert answer.not_looked_at == []
    with pytest.raises(openai.UnprocessableEntityError, match="not a Word document"):
        await client.content_provenance_checks.create(file=("a.docx", text.encode()))


async def test_evidence_names_the_key_and_the_model(service: Service) -> None:
    service.backend.tokenizers.models = {service.tokenizer.fingerprint: "tiny"}
    found = await check(service, service.marked("a-one", 300).encode())
    assert found["results"][1]["key"]["key_id"] == "a-one"
    assert found["results"][1]["model"] == "tiny"
    assert found["texts"][0]["result"]["p_value"] < 1e-5
    assert "text" not in found["texts"][0]
    told = await check(service, service.marked("a-one", 300).encode(), token="verdict")
    assert "key" not in told["results"][1]
    assert told["results"][1]["model"] is None
    assert told["texts"][0]["result"]["p_value"] is None


async def test_a_question_is_that_of_the_route(service: Service) -> None:
    text = service.marked("a-one", 300)
    question = {"mode": "direct", "keys": ["a-two"], "fpr": 1e-3, "phase": 0}
    answer = await check(service, text.encode(), question=json.dumps(question), text="yes")
    asked = {"inputs": [{"text": text}], **{name: question[name] for name in ("keys", "fpr", "phase")}}
    same = (await service.post("/v1/detect/direct", asked)).json()["results"][0]
    assert answer["texts"] == [{"text": text, "result": same}]
    for fields, param in (
        ({"inputs": []}, "question.inputs"),
        ({"conversation": True}, "question.conversation"),
        ({"mode": "odd"}, "question.mode"),
        ({"fpr": 2}, "fpr"),
        ({"ke": []}, "ke"),
        ([], "question"),
    ):
        refused = await check(service, b"x", question=json.dumps(fields))
        assert (refused["http"], refused["param"]) == (422, param)
    assert (await check(service, b"x", question="{"))["code"] == "malformed_json"
    evidence = json.dumps({"evidence": "blocks"})
    assert (await check(service, text.encode(), token="verdict", question=evidence))["http"] == 403


async def test_each_scheme_of_other_systems_has_an_outcome(foreign: Foreign) -> None:
    service = foreign.service
    await foreign.add("greens", "kgw")
    theirs, ours = vllm_text(service.tokenizer, 300), service.marked("a-one", 300)
    for text, detected in (
        (theirs, {"vllm-gumbel"}),
        (ours, {"ttmark"}),
        (theirs + ours, {"vllm-gumbel", "ttmark"}),
    ):
        for token in ("full", "verdict"):
            answer = await check(service, text.encode(), token=token)
            found = {one["scheme"]: one for one in answer["results"][1:]}
            assert list(found) == ["ttmark", "kgw", "vllm-gumbel"]
            assert {name for name, one in found.items() if one["outcome"] == "detected"} == detected
            keys = {name: one["key"]["key_id"] for name, one in found.items() if "key" in one}
            assert set(keys) == (detected if token == "full" else set())
    await foreign.add("elsewhere", "sglang-gumbel", tokenizer="e" * 64)
    answer = await check(service, ours.encode())
    assert "elsewhere" in answer["skipped_keys"]
    assert [one["scheme"] for one in answer["results"][1:]] == ["ttmark", "kgw", "vllm-gumbel"]


async def test_c2pa_s_result_is_that_of_the_manifest(service: Service, monkeypatch) -> None:
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    text = HUMAN * 6
    signed = text + signer.wrapper(text, model="smollm2")
    for content, state, outcome in (
        (signed, "trusted", "detected"),
        (signed.replace("cold", "warm", 1), "invalid", "not_detected"),
        (text, "not_present", "not_detected"),
    ):
        answer = await check(service, content.encode(), token="verdict")
        c2pa = answer["results"][0]
        assert (c2pa["type"], c2pa["validation_state"], c2pa["outcome"]) == ("c2pa", state, outcome)
        assert (c2pa["model"], c2pa["issuer"] is None) == (
            ("smollm2", False) if state == "trusted" else (None, True)
        )


async def test_what_could_not_be_looked_at_is_never_not_detected(service: Service) -> None:
    short = await check(service, b"Too short.")
    assert [one["type"] for one in short["results"]] == ["c2pa"]
    assert short["not_looked_at"] == [{"type": "text_watermark", "scheme": "ttmark", "reason": "too_short"}]
    empty = await check(service, b"")
    assert [one["type"] for one in empty["results"]] == ["c2pa"]
    part = await check(service, as_mail(HUMAN * 6, short="Hi."), "a.eml")
    assert part["results"][1]["outcome"] == "not_detected"
    assert part["not_looked_at"] == [
        {"type": "text_watermark", "scheme": "ttmark", "name": "short.txt", "reason": "too_short"}
    ]
    no_key = await check(service, HUMAN.encode() * 6, token="empty")
    assert (no_key["http"], no_key["code"]) == (404, "key_not_found")


@pytest.mark.parametrize(
    ("content", "name", "status", "words"),
    [
        (b"PK\x03\x04" + b"\0" * 99, "a.txt", 422, "Files can be txt, md"),
        (b"\x7fELF\0\0" + b"a" * 99, "upload", 422, "Files can be txt, md"),
        (b"GIF89a\0\0" * 9, "a.gif", 422, "Files can be txt, md"),
        (b"%PDF-1.7\n", "a.txt", 422, "not a PDF"),
        (b"text", "a.docx", 422, "not a Word document"),
        (b"\x89PNG\r\n\x1a\n", "a.txt", 422, "picture"),
        (b"\xff\xfe\xfd" * 99, "a.txt", 422, "UTF-8"),
        (b"word " * 9_000, "a.txt", 413, "ttmark jobs submit"),
        (b"text\n" + b"a\n" * 257, "a.csv", 413, "ttmark jobs submit"),
    ],
)
async def test_a_file_that_gives_no_answer_is_refused_in_words(service, content, name, status, words) -> None:
    refused = await check(service, content, name)
    assert (refused["http"], refused["param"]) == (status, "file")
    assert words in refused["detail"]
    assert "results" not in refused


async def test_a_name_that_lies_is_not_believed(service: Service) -> None:
    marked = service.marked("a-one", 600, spaces="single")
    for name in ("a.txt", "a.pdf", "a.docx", "a.eml", "upload", "a.bin", "../\u0000.html"):
        for made in (FILES["a.docx"], FILES["a.pdf"]):
            answer = await check(service, made(marked), name)
            assert answer["results"][1]["outcome"] == "detected", (name, answer)


ONE = field(b"x")
NAMED = b"Content-Disposition: form-data; name=file"


@pytest.mark.parametrize(
    ("body", "content_type", "status", "words"),
    [
        (ONE + END, "multipart/form-data", 400, "names no boundary"),
        (ONE + END, "multipart/form-data; boundary=c", 400, "does not begin with"),
        (b"x\r\n" + ONE + END, TYPE, 400, "does not begin with"),
        (ONE, TYPE, 400, "cut off"),
        (ONE + b"--b--\r\nmore", TYPE, 400, "follows its end"),
        (ONE + b"--b--\r\n--b--", TYPE, 400, "no head"),
        (ONE + field(b"y") + END, TYPE, 400, "two fields of one name"),
        (ONE * 99 + END, TYPE, 400, "more fields than the limit of 16"),
        (field(b"x", head=b"A: " + b"a" * 5_000) + END, TYPE, 400, "no head"),
        (field(b"x", head=b"Content-Disposition: form-data; filename=a") + END, TYPE, 400, "no name"),
        (
            field(
                b"x", head=b"Content-Disposition: form-data; name=file\r\nContent-Transfer-Encoding: base64"
            )
            + END,
            TYPE,
            400,
            "as they are",
        ),
        (field(b"x", head=NAMED + b"s") + END, TYPE, 422, "file"),
        (END, TYPE, 422, "file: Field required"),
        (b"", TYPE, 422, "required"),
        (b"{}", "application/json", 415, "multipart/form-data"),
        (b"a" * 3_000_000, TYPE, 413, "ttmark jobs submit"),
    ],
)
async def test_a_form_is_read_in_one_way_or_refused(service, body, content_type, status, words) -> None:
    headers = service.headers() | {"Content-Type": content_type}
    for path in PATHS:
        response = await service.client.post(path, content=body, headers=headers)
        assert (response.status_code, words in response.json()["detail"]) == (status, True), response.text


async def test_what_needs_a_token_and_a_scope_needs_them_before_the_file_is_read(service: Service) -> None:
    for token, status in (("none", 403), ("verdict", 200)):
        assert (await check(service, b"x", token=token))["http"] == status
    assert (await service.client.post(PATH, files={"file": b"x"})).status_code == 401


async def test_options_travel_with_openai_s_call(service: Service) -> None:
    question = {"question": json.dumps({"keys": ["a-two"]})}
    file = service.marked("a-one", 300).encode()
    answer = await client_of(service).content_provenance_checks.create(file=file, extra_body=question)
    assert [one.outcome for one in answer.results] == ["not_detected", "not_detected"]


ASKED = """
import { createReadStream } from "node:fs";
import OpenAI, { toFile } from "openai";
const client = new OpenAI({ apiKey: process.argv[2], baseURL: process.argv[3], maxRetries: 0 });
for (const path of process.argv.slice(4)) {
  for (const file of [createReadStream(path), await toFile(createReadStream(path), "upload")]) {
    try {
      const check = await client.contentProvenanceChecks.create({ file });
      console.log(JSON.stringify(check.results.map((one) => [one.type, one.outcome])));
    } catch (error) {
      console.log(JSON.stringify([error.constructor.name, error.status, error.message]));
    }
  }
}
"""


@pytest.mark.long
async def test_openai_s_call_in_typescript_finds_the_same(service: Service, request, tmp_path) -> None:
    (tmp_path / "node_modules").symlink_to(with_npm(request.config.cache, "openai@7.59.0") / "node_modules")
    (tmp_path / "ask.mjs").write_text(ASKED)
    marked = service.marked("a-one", 600, spaces="single")
    files = {name: made(marked) for name, made in FILES.items()}
    files |= {f"human-{name}": made(HUMAN * 6) for name, made in FILES.items()} | {
        "broken.bin": b"\x7fELF\0\0" + b"a" * 99
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    listener = socket.create_server(("127.0.0.1", 0))
    app = service.client._transport.app
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none", lifespan="off"))
    serving = asyncio.create_task(server.serve([listener]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    command = ["node", "ask.mjs", service.tokens["verdict"], address, *files]
    asking = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=subprocess.PIPE)
    said, _ = await asyncio.wait_for(asking.communicate(), 120)
    server.should_exit = True
    await serving
    answers = [json.loads(line) for line in said.splitlines()]
    assert len(answers) == 2 * len(files)
    for number, name in enumerate(files):
        for answer in answers[2 * number : 2 * number + 2]:  # by its name, and as `upload`
            if name == "broken.bin":
                assert answer[:2] == ["UnprocessableEntityError", 422]
                assert "Files can be txt" in answer[2]
            else:
                outcome = "not_detected" if name.startswith("human") else "detected"
                assert answer == [["c2pa", "not_detected"], ["text_watermark", outcome]], name
