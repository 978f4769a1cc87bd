from tests.unit.detect_service.conftest import *
from tests.unit.detect_service.test_failing_documents import break_at  # noqa: F401
