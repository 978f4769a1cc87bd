"""Grammars over a small tokenizer."""

import pytest

from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars
from ttmark.shared.tokenization import TextTokenizer


@pytest.fixture(scope="session")
def grammars() -> JsonGrammars:
    return JsonGrammars(TextTokenizer(byte_tokenizer()), {0})
