from tests.unit.detect_service.conftest import *
from tests.unit.detect_service.foreign_keys import foreign  # noqa: F401
