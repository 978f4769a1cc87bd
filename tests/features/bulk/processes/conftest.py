"""The fixtures of services in processes."""

from tests.integration.detect.conftest import *
