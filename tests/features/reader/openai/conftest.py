from tests.contract.openai.conftest import *
