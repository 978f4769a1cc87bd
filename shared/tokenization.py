"""Text to token ids and back, from a model folder's `tokenizer.json`; the same code in both services.

Most words come again and again, so ids of chunks are remembered. That is exact with byte-level BPE whose
pre-tokenizer ends a piece before every space that follows something else: then tokens on the two sides of
such a place do not depend on each other. Which tokenizers do so is read off their parts; all others are asked
for the whole text.
"""

import hashlib
import json
import re
from bisect import bisect_left
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import orjson
from tokenizers import Encoding, Tokenizer
from tokenizers.models import BPE

from ttmark.shared.byte_tokens import bytes_named
from ttmark.shared.watermark.interruption import STEPS, aside, pause, paused_ranges

# Of GPT-2, of Llama 3, of Qwen 2 and 3, and ours. In none of them has a piece a space behind a character that
# is not white space, nor looks one backwards, or forwards from anything but white space.
_SPLIT_PATTERNS = frozenset(
    {
        r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    }
)
# Memory: at most 2 x 32,768 x about 800 bytes, whatever is sent.
_MOST_CHUNKS = 32_768
_LONGEST_CHUNK = 48
_SHORT_TEXT = 4096  # takes about a millisecond
_MOST_TOKENS = 16
# A text is read in slices of about so many characters: 10 ms, and 5 MB, whatever stands in it.
_SLICE = 16_384
# White space to some version of Unicode or of a library, although not to `str.isspace`.
_DOUBTFUL = "\u180e\u200b\ufeff"
# The last place in a window where a piece ends in any case: before a space as above, or between a letter or
# digit and a sign.
_BEFORE_SPACE = re.compile(rf".*[^\s{_DOUBTFUL}](?= )", re.DOTALL)
_LETTERS = (
    r"0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0410-\u044f"
    r"\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
)
_SIGNS = '\n\r\t.,;:!?()[]{}+-/*=<>|_"\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f'


class ChunkedEncoder:
    """Encodes texts that are cut before spaces; gives what `backend.encode` gives for the whole.

    What is as long as a slice and has no place to cut, such as a run of white space or a word of thousands of
    letters, is cut at its end: its tokens there may be others than those of the whole.
    """

    def __init__(self, backend: Tokenizer) -> None:
        self._backend = backend
        inside = "".join(token.content for token in backend.get_added_tokens_decoder().values())
        signs = "".join(sign for sign in _SIGNS if sign not in inside)
        self._before_sign = re.compile(rf".*[{_LETTERS}](?=[{re.escape(signs)}])", re.DOTALL)
        # Words of late, and those of the generation before. A word is what follows a space; what a text
        # begins with has a space behind it instead.
        self._known: dict[str, tuple[int, ...]] = {}
        self._older: dict[str, tuple[int, ...]] = {}

    @classmethod
    def of(cls, backend: Tokenizer) -> "ChunkedEncoder | None":
        """An encoder, or None where texts cannot be cut without changing their tokens."""
        return cls(backend) if _ends_pieces_before_spaces(backend) else None

    def slices(self, text: str) -> Iterator[str]:
        """The text in slices, none of them longer than 16,384 characters; cut by what stands in it alone."""
        start, size = 0, len(text)
        while size - start > _SLICE:
            pause()
            low, high = start + _SLICE // 2, start + _SLICE
            last = _BEFORE_SPACE.match(text, low, high) or self._before_sign.match(text, low, high)
            end = last.end() if last else high
            yield text[start:end]
            start = end
        yield text[start:]

    def encode(self, text: str) -> list[int]:
        """Token ids of a slice without special tokens."""
        known = self._known  # threads may take turns in here: each goes on with the generation it began with
        pending, *words = text.split(" ")
        parts: list[Sequence[int]] = []
        unknown: list[tuple[int, str]] = []  # place in `parts`, chunk
        if _is_closed(pending):
            first = known.get(pending + " ") or self._recall(pending + " ")
            parts.append(first or ())
            if not first:
                unknown.append((0, pending))
            pending = ""
        for number, word in enumerate(words):
            if number % STEPS == 0:
                pause()
            if not pending:
                ids = known.get(word) or self._recall(word)
                if ids:
                    parts.append(ids)
                    continue
            pending += " " + word
            if _is_closed(word):
                unknown.append((len(parts), pending))
                parts.append(())
                pending = ""
        if pending:
            unknown.append((len(parts), pending))
            parts.append(())
        if unknown:
            places, chunks = zip(*unknown, strict=True)
            for low, high in paused_ranges(0, len(chunks)):
                for place, of_chunk in zip(places[low:high], self._read(chunks[low:high]), strict=True):
                    parts[place] = of_chunk
        return list(chain.from_iterable(parts))

    def _read(self, chunks: Sequence[str]) -> list[list[int]]:
        """Token ids of chunks that follow one another, asked for in one call, which costs as a word does."""
        encoding = encode_whole(self._backend, "".join(chunks))
        starts = [start for start, _ in encoding.offsets]
        ends = [bisect_left(starts, end) for end in accumulate(map(len, chunks))]
        ids = encoding.ids
        read = [ids[start:end] for start, end in pairwise([0, *ends])]
        for chunk, of_chunk in zip(chunks, read, strict=True):
            self._learn(chunk, of_chunk)
        return read

    def _recall(self, word: str) -> tuple[int, ...] | None:
        ids = self._older.get(word)
        if ids is not None:
            self._remember(word, ids)
        return ids

    def _learn(self, chunk: str, ids: list[int]) -> None:
        word = chunk[1:] if chunk[0] == " " else chunk + " "
        short = len(chunk) <= _LONGEST_CHUNK and len(ids) <= _MOST_TOKENS
        if short and " " not in chunk[1:] and _is_closed(chunk[1:] or chunk):
            self._remember(word, tuple(ids))

    def _remember(self, word: str, ids: tuple[int, ...]) -> None:
        if len(self._known) >= _MOST_CHUNKS:
            self._older, self._known = self._known, {}
        self._known[word] = ids


def encode_whole(backend: Tokenizer, text: str, *, special: bool = False) -> Encoding:
    """`backend.encode`, by default without special tokens; other threads run while a long text is read."""
    if len(text) <= _SHORT_TEXT:
        return backend.encode(text, add_special_tokens=special)
    with aside():  # of the two calls only this one lets other threads run
        return backend.encode_batch([text], add_special_tokens=special)[0]


def _is_closed(text: str) -> bool:
    """Whether a piece ends with `text` where a space follows."""
    return bool(text) and not text[-1].isspace() and text[-1] not in _DOUBTFUL


def _ends_pieces_before_spaces(backend: Tokenizer) -> bool:
    return (
        isinstance(backend.model, BPE)
        and not backend.model.dropout
        and _state(backend.normalizer).get("type") in (None, "NFC")  # composes nothing with a space
        and _splits_before_spaces(_state(backend.pre_tokenizer))
        and not any(
            token.lstrip or token.rstrip or token.single_word or " " in token.content
            for token in backend.get_added_tokens_decoder().values()
        )
    )


def _splits_before_spaces(pre_tokenizer: dict[str, Any]) -> bool:
    match pre_tokenizer:
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}:
            return True
        # SmolLM: cuts around each digit are further cuts, after which the pattern is the same.
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            ],
        }:
            return True
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        }:
            return pattern in _SPLIT_PATTERNS
        case _:
            return False


def _state(part: Any) -> dict[str, Any]:
    """The description of a part of a tokenizer; empty where it has none."""
    return {} if part is None else json.loads(part.__getstate__())


TOKENIZER_FILE = "tokenizer.json"
_REPLACEMENT = "\ufffd"


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
        """Text of `ids`, as a `Detokenizer` reads them; special tokens are left out."""
        text = self.backend.decode(list(ids))
        if _REPLACEMENT in text:  # byte fallback gives up whole characters beside bytes of none
            reader = Detokenizer(self)
            text = "".join([*map(reader.push, ids), reader.finish()])
        return text

    def bytes_of(self, token: int, after: int | None = None) -> bytes:
        """What a text gets from a token, not a special one, that stands first, or `after` another one."""
        alone = text = self.backend.decode([token])
        if after is not None:
            text = self.backend.decode([after, token])[len(self.backend.decode([after])) :]
        name = self.backend.id_to_token(token)
        raw = bytes_named(name) if name and _REPLACEMENT in alone + text else None
        return text.encode() if raw is None else raw

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size(with_added_tokens=True)

    @cached_property
    def id_bound(self) -> int:
        """The least number above every token id; more than `vocab_size` where ids have gaps."""
        return max(self.backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @cached_property
    def special_ids(self) -> frozenset[int]:
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


class Detokenizer:
    """The text of one sequence, token by token, in time that is linear in them.

    Characters come when they are whole, U+FFFD for bytes of none as soon as that is certain.
    """

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._last: int | None = None
        self._characters = getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The characters that a token makes certain; a special token, and one that there is not, none."""
        if token in self._tokenizer.special_ids or self._tokenizer.backend.id_to_token(token) is None:
            return ""
        raw, self._last = self._tokenizer.bytes_of(token, self._last), token
        return self._characters.decode(raw)

    def finish(self) -> str:
        return self._characters.decode(b"", final=True)


def _held(ids: list[int], most: int | None) -> list[int]:
    if most is not None and len(ids) > most:
        raise TooManyTokens(len(ids))
    return ids
