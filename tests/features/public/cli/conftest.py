"""Commands that ask a service which a test plays."""

from tests.unit.services.cli.conftest import *
