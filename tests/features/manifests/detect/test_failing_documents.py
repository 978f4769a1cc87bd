"""A document whose manifest ends in an error is answered with one of its own."""

import pytest

from tests.unit.detect_service.test_failing_documents import (  # noqa: F401
    break_at,
    desk,
    test_its_neighbours_are_answered_as_if_it_were_not_there,
)

PLACES = ("stripping:PartedText.__init__", "examiner:ManifestExaminer._one", "stripping:PartedRequest.placed")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    return f"detect_service.features.manifests.manifest_{request.param}"
