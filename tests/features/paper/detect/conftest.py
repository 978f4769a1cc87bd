from typing import cast

import pytest

from tests.unit.detect_service.conftest import *
from ttmark.detect_service.options import Mode


@pytest.fixture(params=["direct", "aligned", "localized"])
def mode(request: pytest.FixtureRequest) -> Mode:
    return cast(Mode, request.param)
