"""The demo model, loaded once, and a key with one pool key."""

from collections.abc import Iterator

import pytest

import ttmark


@pytest.fixture(scope="session")
def model() -> Iterator[ttmark.Model]:
    with ttmark.load("demo", dtype="float32") as model:
        yield model


@pytest.fixture
def key() -> ttmark.Key:
    return ttmark.Key.new(pool=1)
