"""Requests generated from the service's own OpenAPI description: nothing undocumented comes back."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

load_all_checks()
POSITIVE_ACCEPTANCE = CHECKS.get_one("positive_data_acceptance")
AUTHORIZATION = {"Authorization": "Bearer author"}


@pytest.mark.parametrize("examples", [8, pytest.param(7_000, marks=pytest.mark.slow)])
def test_whatever_the_description_allows_or_forbids_is_answered_as_documented(
    fake: Any, tmp_path: Path, examples: int
) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        fake.url + "/openapi.json",
        "--header=Authorization: Bearer author",
        "--checks=all",
        f"--max-examples={examples}",
        "--continue-on-failure",
        "--generation-deterministic",
        "--no-color",
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-6000:]


@pytest.mark.parametrize("examples", [40, pytest.param(25_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_valid_requests_to_a_real_model_are_answered_as_documented(
    fake: Any, path: str, examples: int
) -> None:
    operation = schemathesis.openapi.from_url(fake.url + "/openapi.json")[path]["POST"]

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def check(case: Case) -> None:
        case.body |= {"model": "tiny", "watermark": None, "max_tokens": 4, "max_completion_tokens": 4}
        # A schema cannot say what fits this model: its vocabulary, its context, its chat template.
        case.call_and_validate(headers=AUTHORIZATION, excluded_checks=[POSITIVE_ACCEPTANCE])

    check()


def test_every_route_documents_its_errors(fake: Any) -> None:
    paths = fake.http().get("/openapi.json").json()["paths"]
    for path, operations in paths.items():
        for operation in operations.values():
            documented = set(operation["responses"])
            if path.startswith("/v1/"):
                assert operation["security"] == [{"HTTPBearer": []}]
                assert {"200", "401", "403"} <= documented
            if "requestBody" in operation:
                assert {"400", "404", "408", "413", "415", "429", "500", "503"} <= documented
