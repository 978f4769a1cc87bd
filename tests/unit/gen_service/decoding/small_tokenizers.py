"""Byte-level tokenizers in which a text's tokens depend on bytes and merges alone."""

from collections.abc import Iterable
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "</s>"
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())


def byte_level(model: models.BPE, *, use_regex: bool = False) -> Tokenizer:
    """Of bytes and a model's merges; `use_regex` cuts a text into pieces first."""
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    backend.decoder = decoders.ByteLevel()
    return backend


def bytes_alone(*, use_regex: bool = False, more: Iterable[str] = ()) -> Tokenizer:
    """One token per byte, and `more` that no merge leads to."""
    symbols = [*BYTES, *more]
    vocabulary = {symbol: index for index, symbol in enumerate(symbols)}
    return byte_level(models.BPE(vocab=vocabulary, merges=[]), use_regex=use_regex)


def trained(texts: Iterable[str], vocab_size: int, pre_tokenizer: Any = None) -> Tokenizer:
    """With merges of these texts, within the pieces of a pre-tokenizer; token 0 ends a text."""
    backend = byte_level(models.BPE())
    backend.pre_tokenizer = pre_tokenizer or backend.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=BYTES,
        max_token_length=8,
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return backend
