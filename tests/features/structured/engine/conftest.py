from tests.unit.gen_service.engine.conftest import *
