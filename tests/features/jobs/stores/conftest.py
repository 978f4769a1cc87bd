"""The fixtures of real stores."""

from tests.contract.keys.conftest import *
