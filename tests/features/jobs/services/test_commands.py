"""`ttmark jobs`, `ttmark case` and both clients, against real services over a real Redis."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ttmark.detect_service.features.jobs.commands import jobs as job_commands
from ttmark.services.cli.main import app
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.client import Client
from ttmark.shared.schemas.detection.detect import CombinedRequest, Document
from ttmark.shared.signed_files.signed_file import CaseKey

NO_LIMITS = TokenLimits(requests_per_minute=0, documents_per_minute=0)
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def service(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One that signs cases."""
    file = tmp_path_factory.mktemp("key") / "case.pem"
    file.write_text(CaseKey.generate().pem())
    return cluster.start("detect-signing", {"TTMARK_CASE_KEY_FILE": str(file)})


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


def test_a_case_of_the_service_is_verified_with_the_key_that_it_shows(run: Run, service: Any, token: str):
    with Client(service.url, token) as client:
        request = CombinedRequest(inputs=[Document(id="<b>x</b>", text="some text")], case=True)
        case = client.detect(request).results[0].case
    assert run("case", "verify", "-", input=case).stdout.startswith("genuine")
    assert "was changed since" in run("case", "verify", "-", input=case.replace('"fpr": ', '"fpr": 1')).output
