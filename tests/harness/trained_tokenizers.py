"""Tokenizers of the usual kinds, trained on the spot: nothing is downloaded."""

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.harness.byte_tokenizers import trained_bytes
from ttmark.shared.tokenization import TextTokenizer

_SPACE = "▁"
_UNKNOWN = "<unk>"
_LOWEST_SCORE = -30.0


def byte_level(texts: Iterable[str], vocab_size: int) -> TextTokenizer:
    """BPE over bytes."""
    return TextTokenizer(trained_bytes(texts, vocab_size))


def unigram(texts: Iterable[str], vocab_size: int) -> TextTokenizer:
    """SentencePiece's Unigram with metaspace, NFKC and a token for each byte."""
    trained = Tokenizer(models.Unigram())
    trained.normalizer = normalizers.NFKC()
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=[_UNKNOWN], unk_token=_UNKNOWN, show_progress=False
    )
    trained.train_from_iterator(texts, trainer)
    pieces = [(piece, score) for piece, score in json.loads(trained.to_str())["model"]["vocab"]]
    pieces += [(f"<0x{byte:02X}>", _LOWEST_SCORE) for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = _sentencepiece_decoder()
    return TextTokenizer(tokenizer)


def bpe_with_byte_fallback(texts: Iterable[str], vocab_size: int) -> TextTokenizer:
    """SentencePiece's BPE over characters with a token for each byte, as Llama 2 and Mistral have it."""
    tokenizer = Tokenizer(models.BPE(unk_token=_UNKNOWN, fuse_unk=True, byte_fallback=True))
    # No pre-tokenizer: a token may span words, as in the models that are named above.
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend(_SPACE), normalizers.Replace(" ", _SPACE)]
    )
    tokenizer.decoder = _sentencepiece_decoder()
    special = [_UNKNOWN, *(f"<0x{byte:02X}>" for byte in range(256))]
    # Words one by one, or the trainer would see one word in each text.
    words = (_SPACE + word for text in texts for word in text.split(" "))
    plain = Tokenizer(models.BPE())
    plain.train_from_iterator(
        words, trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False)
    )
    learned = json.loads(plain.to_str())["model"]
    tokenizer.model = models.BPE(
        vocab=learned["vocab"],
        merges=[tuple(merge) for merge in learned["merges"]],
        unk_token=_UNKNOWN,
        fuse_unk=True,
        byte_fallback=True,
    )
    return TextTokenizer(tokenizer)


KINDS: Mapping[str, Callable[[Iterable[str], int], TextTokenizer]] = MappingProxyType(
    {
        "byte-level BPE": byte_level,
        "SentencePiece Unigram": unigram,
        "SentencePiece BPE": bpe_with_byte_fallback,
    }
)


def _sentencepiece_decoder() -> decoders.Decoder:
    return decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
