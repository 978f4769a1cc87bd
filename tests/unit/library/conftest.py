"""The demo model, loaded once, and a key with one pool key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ttmark
from tests.harness.measured_here import measured_here
from ttmark.shared.keys.key_files import LibraryKeyFile
from ttmark.shared.schemas.profile import profile_fields


@pytest.fixture(scope="session")
def model(folder_of_choices: Path) -> Iterator[ttmark.Model]:
    with measured_here(folder_of_choices):
        loaded = ttmark.load("demo", reproducible=True)
    with loaded:
        yield loaded


@pytest.fixture(scope="session")
def folder_of_choices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(autouse=True)
def _measured_here(folder_of_choices: Path) -> Iterator[None]:
    with measured_here(folder_of_choices):
        yield


@pytest.fixture
def key() -> ttmark.Key:
    # Always the same: under one key in some hundred the text of a seed is a loop, which has little of a mark.
    return ttmark.Key(LibraryKeyFile(secret="07" * 32, profile=profile_fields(pool=1)))
