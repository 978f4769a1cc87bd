from tests.unit.detect_service.conftest import *
