"""A tiny model, prompts and a signing key."""

from tests.integration.evaluation.conftest import *
