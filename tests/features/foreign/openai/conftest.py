"""The fixtures of the generation service's contract."""

from tests.contract.openai.conftest import *
