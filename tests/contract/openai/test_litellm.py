"""LiteLLM reaches the service as any other with OpenAI's API, streaming included."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("ask_litellm.py")
# Prices of models come from the package instead of the network.
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
SERVICES = ("fake", "engine")


@pytest.fixture(scope="module")
def answers(fake_service: Any, engine_service: Any) -> dict[str, Any]:
    """What came back of each service."""
    fake_service.generator.reset()
    command = [sys.executable, str(SCRIPT), fake_service.url, engine_service.url]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | OFFLINE, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    return dict(zip(SERVICES, json.loads(run.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("service", SERVICES)
def test_an_answer_has_text_usage_and_a_watermark(answers: dict[str, Any], service: str) -> None:
    answer = answers[service]
    assert answer["text"]
    assert answer["finish_reason"] == "length"
    assert answer["completion_tokens"] == 12
    assert answer["watermark"]["key_id"] == "acme-main"


@pytest.mark.parametrize("service", SERVICES)
def test_a_stream_adds_up_to_the_answer(answers: dict[str, Any], service: str) -> None:
    answer = answers[service]
    assert len(answer["streamed"]) > 2
    assert "".join(answer["streamed"]) == answer["text"]
    assert answer["streamed_tokens"] == [12]


@pytest.mark.parametrize("service", SERVICES)
def test_an_error_is_the_exception_that_litellm_has_for_it(answers: dict[str, Any], service: str) -> None:
    assert "no such model" in answers[service]["error"]
