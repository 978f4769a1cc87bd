"""`ttmark jobs`, `ttmark case` and both clients, against real services over a real Redis."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.unit.audit.conftest import events
from ttmark.services.cli import jobs as job_commands
from ttmark.services.cli.main import app
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.cases.signed_file import CaseKey
from ttmark.shared.client import Client
from ttmark.shared.schemas.detection import CombinedRequest, Document

KEY = CaseKey.generate()
NO_LIMITS = TokenLimits(requests_per_minute=0, documents_per_minute=0)
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def service(start_kept: Callable[..., Any]) -> Any:
    return start_kept(KEY)


@pytest.fixture(scope="module")
def token(cluster: Any) -> str:
    return str(cluster.operator.token(limits=NO_LIMITS))


@pytest.fixture
def run(service: Any, token: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setattr(job_commands, "_POLL_SECONDS", 0.05)
    monkeypatch.setenv("TTMARK_DETECT_URL", service.url)
    monkeypatch.setenv("TTMARK_TOKEN", token)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, **options: CliRunner().invoke(app, arguments, **options)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("mode", ["combined", "direct", "aligned", "localized"])
def test_rows_are_answered_as_the_route_answers_them(run: Run, service: Any, token: str, mode: str) -> None:
    texts = [f"the text of number {number}, which is long enough to be read" for number in range(12)]
    rows = [{"id": f"row {number}", "text": text} for number, text in enumerate(texts)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("jobs", "submit", "in.jsonl", "--out", "out.jsonl", "--mode", mode, "--fpr", "0.001")
    assert result.exit_code == 0, result.output
    job = result.stdout.strip()
    assert f"{job} finished: 12 of 12 documents answered" in result.stderr
    answered = lines(Path("out.jsonl").read_text())
    route = "/v1/detect" + ("" if mode == "combined" else f"/{mode}")
    body = {"inputs": rows, "fpr": 0.001}
    asked = service.request("POST", route, token, json=body).json()["results"]
    assert [(one["row"], one["id"], one["verdict"], one["p_value"], one["tokens"]) for one in answered] == [
        (number, one["id"], one["verdict"], one["p_value"], one["tokens"]) for number, one in enumerate(asked)
    ]
    assert (answered[0]["weak"] is None) == (mode != "combined")
    again = run("jobs", "results", job)
    assert lines(again.stdout) == answered
    assert not list(Path().glob("out.jsonl.*"))


def test_what_cannot_be_read_or_is_refused_is_named_and_stops_no_other(run: Run) -> None:
    Path("in.csv").write_text('id,text,token_ids\na,hello there,\nb,,"[1, ""x""]"\nc,,[999999]\nd,,"[]"\n')
    result = run("jobs", "submit", "in.csv", "--out", "out.csv")
    assert result.exit_code == 1
    assert "ttmark: b: token_ids" in result.stderr
    assert "ttmark: c: " in result.stderr
    with Path("out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["row"], row["id"], bool(row["error"])) for row in rows] == [
        ("0", "a", False),
        ("1", "d", False),
    ]


def test_files_and_folders_are_documents(run: Run) -> None:
    Path("f/g").mkdir(parents=True)
    Path("f/a.txt").write_text("some text")
    Path("f/g/b.html").write_text("<p>some text")
    Path("f/c.odp").write_text("x")
    result = run("jobs", "submit", "f", "none.txt")
    assert result.exit_code == 1
    assert "ttmark: none.txt: No such file" in result.stderr
    assert "1 of other kinds" in result.stderr
    job = result.stdout.strip()
    rows = lines(run("jobs", "results", job).stdout)
    assert [row["id"] for row in rows] == ["f/a.txt", "f/g/b.html"]
    said = run("jobs", "status", job)
    assert said.stdout == f"{job} finished: 2 of 2 documents answered\n"
    assert json.loads(run("jobs", "status", job, "--json").stdout)["answered"] == 2


def test_a_job_that_is_cancelled_is_gone(run: Run, cluster: Any) -> None:
    Path("a.txt").write_text("some text")
    job = run("jobs", "submit", "a.txt").stdout.strip()
    assert run("jobs", "cancel", job).exit_code == 2  # nobody could be asked
    other = cluster.operator.token(tenant="globex")
    assert run("jobs", "cancel", job, "--yes", "--token", other).exit_code == 1
    assert run("jobs", "cancel", job, "--yes").stdout == f"cancelled {job}\n"
    for command in ("status", "results", "cancel"):
        result = run("jobs", command, job, *(["--yes"] if command == "cancel" else []))
        assert (result.exit_code, result.stderr) == (1, "ttmark: There is no such job.\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["in.jsonl", "--out", "in.jsonl"], "exists already"),
        (["in.jsonl", "--out", "out.txt"], "none of"),
        (["in.jsonl", "--key", "nobody-s"], "no such key"),
        (["in.jsonl", "--fpr", "2"], "fpr"),
        (["in.jsonl", "--webhook", "http://127.0.0.1/"], "webhook"),
        (["empty.jsonl"], "no document to send"),
        (["none.jsonl"], "there is no file"),
    ],
)
def test_a_job_that_cannot_be_made_says_why_in_one_line(run: Run, arguments: list[str], reason: str) -> None:
    Path("in.jsonl").write_text('{"text": "a"}\n')
    Path("empty.jsonl").write_text("")
    result = run("jobs", "submit", *arguments)
    assert result.exit_code == 1, result.output
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize("odd", ["..", "../keys", "", "a/b", "%2e%2e", "?x", "é", "0" * 31])
def test_an_odd_id_reaches_no_other_route(run: Run, odd: str) -> None:
    result = run("jobs", "status", "--", odd)
    assert result.exit_code == 1
    assert re.match("ttmark: (job_id|There is no|Not Found|.*Not Found)", result.stderr), result.stderr


def found(service: Any, token: str) -> str:
    with Client(service.url, token) as client:
        request = CombinedRequest(inputs=[Document(id="<b>x</b>", text="some text")], case=True)
        case = client.detect(request).results[0].case
    assert case is not None
    return case


def test_a_case_is_stored_shown_verified_and_deleted(run: Run, service: Any, token: str) -> None:
    case = found(service, token)
    Path("case.json").write_text(case)
    result = run("case", "store", "case.json")
    link = result.stdout.splitlines()[0]
    assert re.fullmatch(rf"{service.url}/#case=[0-9a-f]{{32}}", link), result.output
    for name in (link, link[-32:], f"{service.url}/v1/cases/{link[-32:]}"):
        shown = run("case", "show", name)
        assert shown.stdout == case
    assert run("case", "verify", "-", input=case).stdout.startswith("genuine")
    assert run("case", "delete", link).exit_code == 2  # nobody could be asked
    assert run("case", "delete", link, "--yes").exit_code == 0
    result = run("case", "show", link)
    assert (result.exit_code, result.stderr) == (1, "ttmark: There is no such case.\n")
    Path("case.json").write_text(case.replace("not_detected", "watermarked").replace("too_short", "w"))
    assert "is refused" in run("case", "store", "case.json").stderr
    Path("case.json").write_bytes(b"\xff")
    assert run("case", "store", "case.json").exit_code == 1
    for odd in ("", "..", link[:-1], "x" * 32, f"{link}/", f"{link}\n"):
        assert run("case", "show", "--", odd).exit_code == 2


def test_the_operator_deletes_what_anybody_stored(run, service, cluster, token, monkeypatch):
    with Client(service.url, token) as client:
        case_id = client.store_case(found(service, token)).id
    second = cluster.operator.token()
    refused = run("case", "delete", case_id, "--yes", "--token", second)
    assert (refused.exit_code, refused.stderr) == (
        1,
        "ttmark: Another token stored this case: its bearer or an operator can delete it.\n",
    )
    for name in ("TTMARK_STORE_URL", "TTMARK_KEK"):
        monkeypatch.setenv(name, cluster.environment[name])
    Path("audit").mkdir()
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", "audit")
    wrong = run("case", "delete", case_id, "--yes", "--tenant", "globex")
    assert (wrong.exit_code, wrong.stderr) == (1, "ttmark: tenant globex has no such case\n")
    assert run("case", "delete", case_id, "--yes", "--tenant", "acme").stdout == f"deleted {case_id}\n"
    assert run("case", "show", case_id).exit_code == 1
    (event,) = [event for event in events(Path("audit")) if event["action"] == "case.delete"]
    assert (event["tenant"], event["case_id"]) == ("acme", case_id)
    assert event["actor"]


def test_a_service_without_the_setting_keeps_no_case(run, service, cluster, token):
    Path("case.json").write_text(found(service, token))
    result = run("case", "store", "case.json", "--url", cluster.of("detect-1")[0].url)
    assert (result.exit_code, "TTMARK_CASES_KEEP_DAYS" in result.stderr) == (1, True)
