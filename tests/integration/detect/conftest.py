"""A tokenizer of words."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from ttmark.shared.tokenization import TextTokenizer


@pytest.fixture
def words() -> TextTokenizer:
    """One token for each of w0 to w199, and one for anything else."""
    vocabulary = {"[UNK]": 0} | {f"w{number}": number + 1 for number in range(200)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return TextTokenizer(tokenizer)
