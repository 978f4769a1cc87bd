from tests.unit.shared.watermark.conftest import *
