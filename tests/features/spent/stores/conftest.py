from tests.contract.keys.conftest import *
