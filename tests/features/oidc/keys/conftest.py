"""The fixtures of a key store."""

from tests.unit.shared.keys.conftest import *
