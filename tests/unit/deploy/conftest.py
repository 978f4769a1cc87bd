"""The files of the deployment, read once."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.container_environment import interpolated
from tests.harness.imports import ROOT


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def compose_text() -> str:
    return (ROOT / "docker-compose.yml").read_text()


@pytest.fixture(scope="session")
def compose(compose_text: str) -> dict[str, Any]:
    """The Compose file as Compose reads it without a .env: merged, variables replaced by their defaults."""
    document: dict[str, Any] = yaml.safe_load(interpolated(compose_text, {})[0])
    return document


@pytest.fixture(scope="session")
def compose_variables(compose_text: str) -> dict[str, str]:
    """Every variable that the Compose file reads, with its default."""
    return interpolated(compose_text, {})[1]


@pytest.fixture(scope="session")
def example_environment() -> dict[str, str]:
    """.env.example: the variables that are set and those that are commented out."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    matches = (re.fullmatch(r"#?([A-Z_]+)=(.*)", line) for line in lines)
    return {match[1]: match[2] for match in matches if match}
