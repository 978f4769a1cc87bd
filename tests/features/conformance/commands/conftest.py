from tests.integration.evaluation.conftest import *
