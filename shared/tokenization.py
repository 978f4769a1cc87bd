"""Text to token ids and back, from a model folder's `tokenizer.json`; the same code in both services."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import orjson
from tokenizers import Tokenizer

from ttmark.shared.chunked_encoding import ChunkedEncoder, encode_whole

TOKENIZER_FILE = "tokenizer.json"


class TokenizerMissing(Exception):
    """A folder holds no usable `tokenizer.json`."""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """Token ids of a text, and the half-open character span that each covers."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class TextTokenizer:
    """A `tokenizers.Tokenizer` without special tokens, truncation or padding."""

    def __init__(self, backend: Tokenizer) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self._chunks = ChunkedEncoder.of(backend)

    @classmethod
    def load(cls, folder: str | Path) -> "TextTokenizer":
        """Reads `tokenizer.json` in `folder`.

        Raises:
            TokenizerMissing: the file is absent or is not a tokenizer.
        """
        path = Path(folder) / TOKENIZER_FILE
        if not path.is_file():
            raise TokenizerMissing(f"no {TOKENIZER_FILE} in {folder}")
        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception on a file that it cannot parse
            raise TokenizerMissing(f"{path} is not a tokenizer: {error}") from error

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, special tokens neither added nor needed."""
        if self._chunks is not None:
            return self._chunks.encode(text)
        return encode_whole(self.backend, text).ids

    def encode_with_offsets(self, text: str) -> EncodedText:
        """Token ids of `text` with the character span of each token."""
        encoding = encode_whole(self.backend, text)
        return EncodedText(encoding.ids, encoding.offsets)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`; special tokens are left out."""
        return self.backend.decode(list(ids), skip_special_tokens=True)

    @property
    def vocab_size(self) -> int:
        """Number of token ids, added tokens included."""
        return self.backend.get_vocab_size(with_added_tokens=True)

    @cached_property
    def id_bound(self) -> int:
        """The least number above every token id; more than `vocab_size` where ids have gaps."""
        return max(self.backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of the tokens that `decode` leaves out."""
        added = self.backend.get_added_tokens_decoder()
        return frozenset(number for number, token in added.items() if token.special)

    def canonical(self) -> bytes:
        """The tokenizer's canonical JSON (`docs/spec.md`, section "Tokenizer")."""
        description = orjson.loads(self.backend.to_str())
        description.pop("truncation", None)
        description.pop("padding", None)
        return orjson.dumps(description, option=orjson.OPT_SORT_KEYS)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the canonical JSON: what a profile names its tokenizer by."""
        return hashlib.sha256(self.canonical()).hexdigest()
