from tests.contract.openai.conftest import *
from tests.contract.openai.tools import scripted, tooled  # noqa: F401
