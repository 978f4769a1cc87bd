from tests.unit.services.cli.conftest import *
