"""A feature that nobody imports is deleted with its folder: both services start and answer without it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.features import features, needs_of
from tests.harness.imports import PACKAGES, ROOT

pytestmark = pytest.mark.long

ANSWERS = """
import asyncio, os, sys
from pathlib import Path
import httpx
from tests.harness.observe.services import variables
from tests.harness.walk import chat, detect_text
from ttmark.services.composition.detection_service import build_detection_service
from ttmark.services.composition.generation_service import build_generation_service
from ttmark.services.local.provision import provision
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings

setup = provision("demo", None, Path(sys.argv[1]))
os.environ |= variables(setup)

async def ask(app, path, body):
    headers = {"Authorization": f"Bearer {setup.token}"}
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers, timeout=60) as client,
    ):
        while (await client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.05)
        return (await client.post(path, json=body)).raise_for_status().text

assert "content" in asyncio.run(
    ask(build_generation_service(GenerationSettings()), "/v1/chat/completions", chat(setup))
)
assert "verdict" in asyncio.run(
    ask(build_detection_service(DetectionSettings()), "/v1/detect", detect_text(7))
)
print(*(name for name in sys.modules if name.startswith("ttmark.")))
"""


def gone_with(feature: str) -> set[str]:
    """A feature, those that need it, and those that need these."""
    gone = {feature}
    while more := {name for name in features() if needs_of(name) & gone} - gone:
        gone |= more
    return gone


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "ttmark", tree / "ttmark", ignore=lambda *_: PACKAGES, symlinks=True)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tree / "ttmark" / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tree


@contextmanager
def without(names: set[str], tree: Path, aside: Path) -> Iterator[None]:
    """The copy without the folders of these features."""
    moved = []
    for number, folder in enumerate(one for name in names for one in tree.glob(f"ttmark/*/features/{name}")):
        folder.rename(aside / str(number))
        moved.append((aside / str(number), folder))
    try:
        yield
    finally:
        for kept, folder in moved:
            kept.rename(folder)


@pytest.mark.parametrize("feature", features())
def test_both_services_answer_without_it(feature: str, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "aside").mkdir()
    with without(gone_with(feature), tree, tmp_path / "aside"):
        answered = subprocess.run(
            [sys.executable, "-c", ANSWERS, str(tmp_path / "state")],
            env=os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{ROOT}"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert answered.returncode == 0, answered.stderr[-3000:]
    loaded = {
        name.split(".features.")[1].split(".")[0] for name in answered.stdout.split() if ".features." in name
    }
    assert loaded, "no feature is left"
    assert not loaded & gone_with(feature)
