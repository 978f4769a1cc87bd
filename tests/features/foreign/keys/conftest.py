from tests.unit.shared.keys.conftest import *
