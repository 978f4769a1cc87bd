"""The test bed of `tests.harness.observe`."""

import os
import shutil

import pytest


@pytest.fixture
def model() -> str:
    """The variable lets another model be served than the one that ships with the project."""
    return os.environ.get("TTMARK_TEST_MODEL", "demo")


@pytest.fixture(autouse=True)
def _needs_prometheus() -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is missing; it is Debian's package of that name")
