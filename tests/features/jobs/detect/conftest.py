"""The fixtures of the detection service in process."""

from tests.unit.detect_service.conftest import *
