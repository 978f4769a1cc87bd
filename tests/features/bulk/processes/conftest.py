from tests.integration.detect.conftest import *
