"""The demo model, loaded once, and a key with one pool key."""

from collections.abc import Iterator

import pytest

import ttmark
from ttmark.shared.keys.key_files import LibraryKeyFile
from ttmark.shared.schemas.profile_presets import profile_fields


@pytest.fixture(scope="session")
def model() -> Iterator[ttmark.Model]:
    with ttmark.load("demo", dtype="float32") as model:
        yield model


@pytest.fixture
def key() -> ttmark.Key:
    # Always the same: under one key in some hundred the text of a seed is a loop, which has little of a mark.
    return ttmark.Key(LibraryKeyFile(secret="07" * 32, profile=profile_fields(pool=1)))
