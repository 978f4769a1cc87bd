from typing import Any

import pytest

from tests.unit.detect_service.conftest import *
from tests.unit.detect_service.test_document_limits import unread  # noqa: F401
from tests.unit.detect_service.test_failing_documents import break_at, desk  # noqa: F401

WAYS: list[tuple[str, dict[str, Any]]] = [
    *(("direct", {}), ("direct", {"phase": 0}), ("aligned", {})),
    *(("localized", {}), ("localized", {"method": "waterseeker"})),
]


@pytest.fixture(params=["direct", "aligned", "localized"])
def mode(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=WAYS)
def asked(request: pytest.FixtureRequest) -> Any:
    return request.param
