from tests.contract.keys.conftest import *
from tests.contract.keys.services.conftest import *
