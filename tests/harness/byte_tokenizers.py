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


def trained_bytes(
    texts: Iterable[str], vocab_size: int, pre_tokenizer: Any = None, **options: Any
) -> Tokenizer:
    """BPE over bytes, by default as GPT-2, Llama 3 and Qwen have it; `options` as those of the trainer."""
    backend = byte_level(models.BPE(), use_regex=True)
    backend.pre_tokenizer = pre_tokenizer or backend.pre_tokenizer
    options |= {"vocab_size": vocab_size, "initial_alphabet": BYTES, "show_progress": False}
    backend.train_from_iterator(texts, trainers.BpeTrainer(**options))
    return backend


def trained(texts: Iterable[str], vocab_size: int, pre_tokenizer: Any = None) -> Tokenizer:
    """With merges of these texts, within the pieces of a pre-tokenizer; token 0 ends a text."""
    whole = byte_level(models.BPE()).pre_tokenizer
    return trained_bytes(texts, vocab_size, pre_tokenizer or whole, special_tokens=[END], max_token_length=8)
