"""The fixtures of both services over a real store."""

from tests.contract.keys.conftest import *
from tests.contract.keys.services.conftest import *
