"""The fixtures of the watermark's core."""

from tests.unit.shared.watermark.conftest import *
