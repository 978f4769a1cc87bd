"""The test bed of `deploy.observe`."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # deploy/ is no installed package


@pytest.fixture
def model() -> str:
    """The variable lets another model be served than the one that ships with the project."""
    return os.environ.get("TTMARK_TEST_MODEL", "demo")


@pytest.fixture(autouse=True)
def _needs_prometheus() -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is missing; it is Debian's package of that name")
