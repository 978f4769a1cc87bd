"""Programs of others against `ttmark up` with SmolLM2, a scanner and two agents; samples of its answers."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.imports import ROOT
from tests.harness.outside_packages import with_npm, with_pip
from tests.integration.up.conftest import Up, UpRunner

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DOCS = ROOT / "docs"
OPENAI_AGENTS = '''
import json
import sys

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool
from agents import set_tracing_disabled
from openai import AsyncOpenAI

url, token, after = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
set_tracing_disabled(True)
written = []


@function_tool
def note(text: str) -> str:
    """Write a paragraph of the report down."""
    written.append(text)
    agent.model_settings.tool_choice = "required" if len(written) < 3 else "none"
    return after[len(written) - 1]


note.params_json_schema["properties"]["text"] |= {"minLength": 200, "maxLength": 400}
agent = Agent(
    name="reporter",
    instructions="You write long reports about walks, a paragraph at a time.",
    model=OpenAIChatCompletionsModel("smollm2", AsyncOpenAI(base_url=url, api_key=token, timeout=400)),
    model_settings=ModelSettings(
        tool_choice="required", parallel_tool_calls=False, max_tokens=250, temperature=1.0
    ),
    tools=[note],
    reset_tool_choice=False,
)
said = Runner.run_sync(agent, "Write about a walk by the sea.", max_turns=5)
print(json.dumps({"calls": written, "text": said.final_output}))
'''
PYDANTIC_AI = '''
import json
import sys
from typing import Annotated

from pydantic import Field
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

url, token, after = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
written = []


def settings(_):
    choice = "required" if len(written) < 3 else "none"
    return {"max_tokens": 250, "temperature": 1.0, "parallel_tool_calls": False, "tool_choice": choice}


agent = Agent(
    OpenAIChatModel("smollm2", provider=OpenAIProvider(base_url=url, api_key=token)),
    instructions="You write long reports about walks, a paragraph at a time.",
    model_settings=settings,
)


@agent.tool_plain
def note(text: Annotated[str, Field(min_length=200, max_length=400)]) -> str:
    """Write a paragraph of the report down."""
    written.append(text)
    return after[len(written) - 1]


said = agent.run_sync("Write about a walk by the sea.")
print(json.dumps({"calls": written, "text": said.output}))
'''
NEXT = (
    "Written. Now a paragraph about the people and the animals that you met.",
    "Written. Now a paragraph about the storm in the evening.",
    "Written. Now thank the readers in a warm letter, and tell them where to go for lunch.",
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, smollm2_folder: Path) -> Iterator[Up]:
    runner = UpRunner(tmp_path_factory.mktemp("up"))
    (runner.state / "models").mkdir(parents=True)
    (runner.state / "models/smollm2").symlink_to(smollm2_folder)
    running = runner(model="smollm2")
    running.wait_for("You:")  # both services are ready
    yield running
    runner.stop_all()


@pytest.fixture(scope="module")
def token(up: Up) -> str:
    return (up.state / "token").read_text().strip()


def test_compatcanary_finds_the_service_compatible(up, token, pytestconfig: Any, tmp_path: Path) -> None:
    folder = with_npm(pytestconfig.cache, "compatcanary@0.2.2")
    report = tmp_path / "report.json"
    command = [folder / "node_modules/.bin/compatcanary", "scan", "--format", "json", "--output", report]
    asked = ["--base-url", f"http://127.0.0.1:{up.gen_port}/v1", "--model", "smollm2", "--timeout", "300000"]
    key = {"OPENAI_API_KEY": token}
    subprocess.run([*command, *asked], env=os.environ | key, check=True, timeout=800)
    results = json.loads(report.read_text())["results"]
    assert [(each["id"], each["status"]) for each in results] == [(each["id"], "pass") for each in results]
    assert len(results) == 7


@pytest.mark.parametrize(
    ("program", "package"),
    [(OPENAI_AGENTS, "openai-agents==0.24.0"), (PYDANTIC_AI, "pydantic-ai-slim[openai]==2.68.0")],
    ids=["openai-agents", "pydantic-ai"],
)
def test_an_agent_calls_three_times_and_its_texts_are_found(
    up, token, pytestconfig, program, package
) -> None:
    path = os.environ | {"PYTHONPATH": str(with_pip(pytestconfig.cache, package))}
    url = f"http://127.0.0.1:{up.gen_port}/v1"
    command = [sys.executable, "-c", program, url, token, json.dumps(NEXT)]
    said = subprocess.run(command, env=path, capture_output=True, text=True, check=False, timeout=800)
    assert said.returncode == 0, said.stderr
    run = json.loads(said.stdout)
    assert len(run["calls"]) == 3
    documents = {
        "final text": [run["text"]],
        "arguments": [chr(10).join(run["calls"])],
        "run": [*run["calls"], run["text"]],
    }
    for name, texts in documents.items():
        asked = {"inputs": [{"id": str(at), "text": text} for at, text in enumerate(texts)]}
        found = httpx.post(
            f"http://127.0.0.1:{up.detect_port}/v1/detect",
            json=asked | {"conversation": len(texts) > 1},
            headers={"Authorization": f"Bearer {token}"},
            timeout=100,
        ).json()["results"][0]
        print(package, name, found["verdict"], round(found["log10_p"], 1))
        assert found["verdict"] == "watermarked", (name, texts)


def test_samples_of_answers_are_what_the_service_says_today(up: Up) -> None:
    page = (DOCS / "tutorials/app-developer.md").read_text()
    (code,) = [
        each for each in re.findall(r"```python\n(.*?)```", page, re.S) if "answer.model_extra" in each
    ]
    command = [sys.executable, "-c", code.replace("8000", str(up.gen_port))]
    said = subprocess.run(command, cwd=up.folder, capture_output=True, text=True, check=True, timeout=800)
    block = ast.literal_eval(said.stdout.strip().splitlines()[-1])
    sample = ast.literal_eval(re.search(r"```text\n(\{.*?\})\n```", page, re.S)[1])  # type: ignore[index]
    assert list(sample) == list(block)
    assert sample["profile"] == block["profile"]
    without_evidence = json.loads(
        re.search(r"```json\n(\{\"detect.*?\})\n```", (DOCS / "generation.md").read_text(), re.S)[1]  # type: ignore[index]
    )
    assert list(without_evidence) == [name for name in block if name != "log10_p"]
    assert without_evidence["profile"].partition("-r2-")[0] == block["profile"].partition("-r2-")[0]
    for each in (sample, without_evidence, block):
        assert "opening" in each["reasons"]
        assert each["blocks"] == each["watermarked_blocks"] + sum(each["reasons"].values())
