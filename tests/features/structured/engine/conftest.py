"""The fixtures of the engine."""

from tests.unit.gen_service.engine.conftest import *
