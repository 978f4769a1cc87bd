"""docs/frameworks.md and agents.md, taken literally: each block runs, with `make frameworks`' packages."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import yaml

from tests.harness.imports import ROOT
from tests.integration.up.conftest import Up, UpRunner

pytestmark = pytest.mark.slow

FRAMEWORKS = ROOT / ".frameworks"
ADDRESS = "http://127.0.0.1:8000"
DETECTION = "http://127.0.0.1:8001"
HAS = "import sys; from importlib.util import find_spec as f; sys.exit(not all(map(f, sys.argv[1:])))"
MARKED = r"\b(watermarked|partial|unwatermarked)\b"
ROUTER = """
import sys
import litellm
import yaml

router = litellm.Router(model_list=yaml.safe_load(open(sys.argv[1]))["model_list"])
messages = [{"role": "user", "content": "Name three birds."}]
print(router.completion(model="smollm2", messages=messages, max_tokens=20).choices[0].message.content)
"""
SAID = {
    "openai-python": MARKED + r" (strong|weak|none)",
    "openai-node": MARKED + r" (strong|weak|none)",
    "LangGraph": (
        r"(?s)add \(call_.* a: -?\d+\n +b: -?\d+\n.*multiply \(call_.* a: -?\d+\n +b: -?\d+\n"
        r".*Ai Message =+\n\n.*\S"
    ),
    "AI SDK": (
        r"(?s)weather \{\"location\":\".*\"\}\nconvertFahrenheitToCelsius \{\"temperature\":[^\n]*\}\n"
        r".*\S.*\n\w+\n$"
    ),
    "LlamaIndex": MARKED,
    "LiteLLM": rf"(?s){MARKED}\s+{MARKED}",
    "instructor": "kind='(bird|cat|dog)'",
    "Pydantic AI": rf"(?s){MARKED}.*kind='(bird|cat|dog)'",
    "An agent from start to end": rf"(?s){MARKED}.*{MARKED}.*\b(watermarked|not_detected|too_short)\n$",
}


class Block(NamedTuple):
    """A block of the page, and the heading that it stands under."""

    heading: str
    language: str
    number: int
    code: str


def blocks() -> list[Block]:
    found = []
    page = "\n".join((ROOT / "docs" / name).read_text() for name in ("frameworks.md", "agents.md"))
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE):
        for number, (language, code) in enumerate(re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)):
            found.append(Block(heading, language, number, code))
    return found


def of(*languages: str) -> pytest.MarkDecorator:
    chosen = [block for block in blocks() if block.language in languages]
    return pytest.mark.parametrize(
        "block", chosen, ids=[f"{each.heading} {each.number}".replace(" ", "-") for each in chosen]
    )


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, smollm2_folder: Path) -> Iterator[Up]:
    runner = UpRunner(tmp_path_factory.mktemp("up"))
    (runner.state / "models").mkdir(parents=True)
    (runner.state / "models/smollm2").symlink_to(smollm2_folder)
    running = runner(model="smollm2")
    running.wait_for("Press Ctrl-C")
    yield running
    runner.stop_all()


def here(block: Block, up: Up) -> str:
    assert ADDRESS in block.code
    code = block.code.replace(ADDRESS, f"http://127.0.0.1:{up.gen_port}")
    return code.replace(DETECTION, f"http://127.0.0.1:{up.detect_port}")


def python_for(code: str) -> str:
    """The interpreter that has all that a program imports."""
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        name.partition(".")[0]
        for node in imports
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    for python in [sys.executable, *map(str, sorted(FRAMEWORKS.glob("*/bin/python")))]:
        if subprocess.run([python, "-c", HAS, *names], check=False).returncode == 0:
            return python
    pytest.skip(f"not installed: one of {', '.join(sorted(names))}; see make frameworks")


def run(up: Up, *command: str, **variables: str) -> str:
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false"}
    done = subprocess.run(
        command,
        cwd=up.folder,
        env=os.environ | offline | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@of("python")
def test_a_python_block_runs_as_it_stands(up: Up, block: Block) -> None:
    code = here(block, up)
    said = run(up, python_for(code), "-c", code)
    assert said.strip()
    assert re.search(SAID.get(block.heading, ""), said), said


@of("js")
def test_a_node_block_runs_as_it_stands(up: Up, block: Block) -> None:
    packages = FRAMEWORKS / "node/node_modules"
    if shutil.which("node") is None or not packages.is_dir():
        pytest.skip("node, or .frameworks/node, is not there; see make frameworks")
    if not (up.folder / "node_modules").exists():
        (up.folder / "node_modules").symlink_to(packages)
    (up.folder / "block.mjs").write_text(here(block, up))
    said = run(up, "node", "block.mjs")
    assert said.strip()
    assert block.number or re.search(SAID.get(block.heading, ""), said), said


@of("console")
def test_a_console_block_runs_as_it_stands(up: Up, block: Block, tmp_path: Path) -> None:
    (settings,) = [each for each in blocks() if (each.heading, each.language) == (block.heading, "yaml")]
    (tmp_path / "extra-openai-models.yaml").write_text(here(settings, up))
    program = Path(python_for("import llm")).with_name("llm")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    assert run(up, "bash", "-ec", block.code, PATH=path, LLM_USER_PATH=str(tmp_path)).strip()


@of("json")
def test_what_a_chat_application_sends_is_answered(up: Up, block: Block) -> None:
    token = (up.state / "token").read_text().strip()
    address = f"http://127.0.0.1:{up.gen_port}/v1"
    headers = {"Authorization": f"Bearer {token}"}
    assert "smollm2" in httpx.get(f"{address}/models", headers=headers).text
    body = json.loads(block.code)
    answer = httpx.post(f"{address}/chat/completions", json=body, headers=headers, timeout=200)
    assert answer.status_code == 200, answer.text
    assert answer.text.endswith("data: [DONE]\n\n") == body["stream"]
    assert answer.headers["X-TTMark-Status"]


def test_the_settings_of_litellm_s_proxy_reach_the_service(up: Up, tmp_path: Path) -> None:
    (settings,) = [each for each in blocks() if (each.heading, each.language) == ("LiteLLM", "yaml")]
    (tmp_path / "litellm.yaml").write_text(here(settings, up))
    token = (up.state / "token").read_text().strip()
    said = run(up, sys.executable, "-c", ROUTER, str(tmp_path / "litellm.yaml"), TTMARK_TOKEN=token)
    assert said.strip()


def test_the_settings_of_continue_name_the_service() -> None:
    (settings,) = [each for each in blocks() if (each.heading, each.language) == ("Continue", "yaml")]
    (model,) = yaml.safe_load(settings.code)["models"]
    assert (model["provider"], model["model"], model["apiBase"]) == ("openai", "smollm2", f"{ADDRESS}/v1")
