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


# More than the tokens of any text have on average: the longest words of a vocabulary have some 16.
BYTES_OF_A_TOKEN = 16
# Of a tokenizer whose texts cannot be cut: tokens more that a text may have in pieces, for each cut.
_PIECE = 16_384
_TOKENS_OF_A_CUT = 64


class TooManyTokens(Exception):
    """A text has more tokens than were asked for; reading it ended there.

    Attributes:
        read: tokens that were read.
    """

    def __init__(self, read: int) -> None:
        super().__init__(f"more than {read} tokens")
        self.read = read


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

    def encode(self, text: str, most: int | None = None) -> list[int]:
        """Token ids of `text`, special tokens neither added nor needed.

        Raises:
            TooManyTokens: it has more than `most`.
        """
        if self._chunks is None:
            if most is not None:
                self._check_pieces(text, most)
            return _held(encode_whole(self.backend, text).ids, most)
        ids: list[int] = []
        for part in self._chunks.slices(text):
            ids += self._chunks.encode(part)
            _held(ids, most)
        return ids

    def encode_with_offsets(self, text: str) -> EncodedText:
        """Token ids of `text` with the character span of each token."""
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        start = 0
        for part in [text] if self._chunks is None else self._chunks.slices(text):
            encoding = encode_whole(self.backend, part)
            ids += encoding.ids
            offsets += [(start + first, start + last) for first, last in encoding.offsets]
            start += len(part)
        return EncodedText(ids, offsets)

    def _check_pieces(self, text: str, most: int) -> None:
        """Refuses a long text by the tokens of its pieces, each of which takes little memory."""
        read = 0
        for number, start in enumerate(range(0, len(text) if len(text) > _PIECE else 0, _PIECE)):
            read += len(encode_whole(self.backend, text[start : start + _PIECE]).ids)
            if read > most + _TOKENS_OF_A_CUT * number:
                raise TooManyTokens(read)

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


def _held(ids: list[int], most: int | None) -> list[int]:
    if most is not None and len(ids) > most:
        raise TooManyTokens(len(ids))
    return ids
