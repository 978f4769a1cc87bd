"""Where a pre-tokenizer cuts a text into pieces, asked of a token and what stands before it.

Merges keep to pieces. So whether two tokens may stand side by side depends on whether a piece ends between
them, and that on the text since the last cut that nothing behind it moves. Characters that no part of the
pre-tokenizer tells apart are the same to it, and so are long runs of them: few shapes of texts are left.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import Split

from ttmark.shared.byte_tokens import BYTES

NO, CUT, JOINED = 0, 1, 2
"""What a token is behind a text: misspelled; the beginning of a piece; more of one, where merges allow it."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SYNTAX = re.compile(r"\(\?(?:[a-z]*:|<?[=!])|\{[\d,]+\}")
_ATOM = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\.|[^()|?*+.^$]", re.DOTALL)
_RUN = re.compile(r"(\D)\1\1+|(\d)\2{4,}")  # patterns count digits alone, to three
_SAMPLED = 1024  # of the characters that bytes may become
_KEPT = 1 << 14
_KINDS_KEPT = 512  # two bits a token: 12 KB each with 50,000 tokens
_TABLES_KEPT = 256


Bits = NDArray[np.uint8]
"""A bit per token, the first token lowest."""
Seams = tuple[tuple[int, bool], ...]
Parts = tuple[int, str, bytes]
Key = tuple[str, tuple[str, ...]]
Table = tuple[list[Key], NDArray[np.int32], NDArray[np.int32]]
"""Keys; tokens, and the number of each one's key."""


class Place(NamedTuple):
    """Where a text stands.

    Attributes:
        last: its last token; None at the beginning.
        text: the shape of what follows the last certain cut.
        seams: between its tokens, where a cut may still come, and whether one has to.
        part: bytes of a character that is not whole.
    """

    last: int | None = None
    text: str = ""
    seams: Seams = ()
    part: bytes = b""


class _Learned(dict[int, str]):
    """Characters that stand for others; what is missing is learned."""

    def __init__(self, learn: Callable[[str], None]) -> None:
        super().__init__()
        self._learn = learn

    def __missing__(self, point: int) -> str:
        self._learn(chr(point))
        return self[point]


class Pieces:
    """The pieces of a tokenizer whose tokens are bytes.

    Args:
        patterns: of its pre-tokenizer.
        ids: its tokens by their texts, a letter for each byte.
        size: above every token.
    """

    def __init__(self, backend: Tokenizer, patterns: str, ids: Mapping[str, int], size: int) -> None:
        pre_tokenizer, atoms = backend.pre_tokenizer, {*_ATOM.findall(_SYNTAX.sub("", patterns))}
        self._letters = "".join({case for a in atoms if a.isalpha() for case in (a.lower(), a.upper())})
        self._contracted = re.compile(rf"(?<=['’])[{self._letters}]{{1,2}}" if self._letters else "(?!)")
        self._begun = re.compile(rf"['’][{self._letters}]?$" if self._letters else "(?!)")
        wholes = (atom if len(atom) > 1 else re.escape(atom) for atom in sorted(atoms) if not atom.isalpha())
        self._atoms = [Split(Regex(atom), "removed") for atom in wholes]
        self._same = _Learned(lambda character: self._learn([character]))
        self._kinds_of_characters: dict[tuple[bool, ...], str] = {}
        self.cuts = lru_cache(_KEPT)(
            lambda text: frozenset(start for _, (start, _) in pre_tokenizer.pre_tokenize_str(text)) - {0}
        )
        self._ends = lru_cache(None)(self._may_become)
        self._short = lru_cache(_KEPT)(_short)
        self.kinds = lru_cache(_KINDS_KEPT)(self._kinds)
        self.follow = lru_cache(_KEPT)(self._follow)
        self._model, self._size = backend.model, size
        self._added = backend.get_added_tokens_decoder().keys()
        found = ((token, _parts(text)) for text, token in ids.items() if token not in self._added)
        parts = {token: part for token, part in found if part is not None}
        self._learn({character for _, text, _ in parts.values() for character in text})
        self._behind = ("", *sorted(self._kinds_of_characters.values()))
        self._inner = [token for token, (head, *_) in parts.items() if head]
        self._table = lru_cache(_TABLES_KEPT)(
            lambda part, begun: self._shapes(self._inside(part), begun=begun)
        )
        plain = self._shapes(parts.items(), begun=False)
        self._whole = [plain, self._shapes(parts.items(), begun=True) if self._letters else plain]
        self._no_text = np.ones(size, np.bool_)
        self._no_text[[*parts]] = False

    @classmethod
    def of(cls, backend: Tokenizer, ids: Mapping[str, int], size: int) -> "Pieces | None":
        """None where the whole text is one piece, or tokens are not bytes."""
        state = json.loads(backend.pre_tokenizer.__getstate__()) if backend.pre_tokenizer else {}
        patterns = [*_patterns(state)]
        if not any(patterns) or None in patterns or '"ByteLevel"' not in json.dumps(state):
            return None
        return cls(backend, "|".join(filter(None, patterns)), ids, size)

    def _follow(
        self, text: str, seams: Seams, part: bytes, token: int, merged: bool
    ) -> tuple[str, Seams, bytes]:
        """The place behind one more token; whether it would be `merged` with the one before."""
        parts = _parts(self._text(token), part)
        if parts is None or parts[0]:
            return "", (), b""
        begun = self._is_begun(text)
        start, whole, before = len(text), text + self._shape(parts[1], begun=begun), part
        part = parts[2]
        seams = seams if before or not start else (*seams, (start, merged))
        found = [self.cuts(whole + end + after) for end in self._ends(part) for after in self._behind]
        cut = max({seam for seam, _ in seams}.intersection(*found), default=0)
        possible = frozenset().union(*found)
        left = tuple((at - cut, must) for at, must in seams if at > cut and (must or at in possible))
        whole = whole[cut:] if left else _short(whole[cut:])
        return whole, left, part

    def _kinds(self, text: str, seams: Seams, part: bytes) -> tuple[Bits, Bits]:
        """A bit per token behind a place: it begins a piece; it may be more of one."""
        begun = self._is_begun(text)
        keys, tokens, numbers = self._table(part, begun) if part else self._whole[begun]
        asked = (self._asked(text, seams, *key, inner=bool(part)) for key in keys)
        verdicts = np.fromiter(asked, np.uint8, len(keys))[numbers]
        cut, joined = np.zeros(self._size, np.bool_), np.zeros(self._size, np.bool_)
        cut[tokens], joined[tokens] = verdicts == CUT, verdicts == JOINED
        if not part:
            joined |= self._no_text
        return np.packbits(cut, bitorder="little"), np.packbits(joined, bitorder="little")

    def _text(self, token: int) -> str:
        return "" if token in self._added else self._model.id_to_token(token) or ""

    def _inside(self, before: bytes) -> Iterator[tuple[int, Parts]]:
        """The tokens that go on with a character begun before."""
        for token in self._inner:
            if (parts := _parts(self._text(token), before)) is not None:
                yield token, parts

    def _asked(
        self, text: str, seams: Seams, shape: str, ends: tuple[str, ...], *, inner: bool = False
    ) -> int:
        """Of a token of a shape, one of the `ends` included, which begins `inner` to a character or not."""
        start, best = len(text), NO
        musts = {at for at, must in seams if must}
        free = {at for at, _ in seams} | (set() if inner else {start})
        for end in ends:
            size = len(text + shape + end)
            for after in self._behind:
                inside = {cut for cut in self.cuts(text + shape + end + after) if cut < size}
                if musts <= inside <= free:
                    if not inner and (start in inside or not start):
                        return CUT
                    best = JOINED
        return best

    def _shapes(self, parts: Iterable[tuple[int, Parts]], *, begun: bool) -> Table:
        """Shapes of tokens that do not begin inside a character, with the ends that they may get."""
        keys: dict[Key, int] = {}
        found = [
            (token, keys.setdefault((self._shape(text, begun=begun), self._ends(part)), len(keys)))
            for token, (head, text, part) in parts
            if not head
        ]
        tokens, numbers = np.array(found, np.int32).reshape(-1, 2).T.copy()
        return [*keys], tokens, numbers

    def _shape(self, text: str, *, begun: bool) -> str:
        shape = text.translate(self._same)
        if (begun and text[:1] in self._letters) or "'" in text or "’" in text:
            for match in self._contracted.finditer("'" + text if begun else text):
                first = match.start() - begun
                shape = shape[:first] + match[0] + shape[first + len(match[0]) :]
        return self._short(shape)

    def _is_begun(self, text: str) -> bool:
        return self._begun.search(text) is not None

    def _learn(self, characters: Iterable[str]) -> None:
        """Which of them are the same to each part of the patterns."""
        ordered = "".join(sorted(characters, key=lambda each: (each in self._letters, each)))
        others = [{*"".join(piece for piece, _ in atom.pre_tokenize_str(ordered))} for atom in self._atoms]
        for each in ordered:
            kind = tuple(each in those for those in others)
            self._same[ord(each)] = self._kinds_of_characters.setdefault(kind, each)

    def _may_become(self, part: bytes) -> tuple[str, ...]:
        """Shapes of the characters that begin with some bytes; of no bytes, no character."""
        if not part:
            return ("",)
        missing = (2 if part[0] < 0xE0 else 3 if part[0] < 0xF0 else 4) - len(part)
        count, found = 64**missing, set()
        for number in range(0, count, count // _SAMPLED | 1):
            rest = bytes(0x80 + (number >> 6 * place & 63) for place in reversed(range(missing)))
            found |= {*(part + rest).decode(errors="ignore")}
        self._learn(each for each in found if ord(each) not in self._same)
        return tuple(sorted({self._same[ord(each)] for each in found}))


def _short(shape: str) -> str:
    return _RUN.sub(r"\1\1\2\2\2\2", shape)


def _parts(text: str, before: bytes = b"") -> Parts | None:
    """Bytes of a character begun before, whole characters, and bytes of one that goes on behind."""
    try:
        raw = before + bytes(map(BYTES.__getitem__, text))
    except KeyError:
        return None
    try:
        return 0, raw.decode(), b""
    except UnicodeDecodeError:
        head = next((place for place, byte in enumerate(raw) if not 0x80 <= byte < 0xC0), len(raw))
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return head, decoder.decode(raw[head:]), decoder.getstate()[0]
    except UnicodeDecodeError:
        return None


def _patterns(part: dict[str, Any]) -> Iterator[str | None]:
    """The regular expressions of a pre-tokenizer; None: it has a part that is none."""
    match part:
        case {"type": "Sequence", "pretokenizers": parts}:
            for each in parts:
                yield from _patterns(each)
        case {"type": "Split", "pattern": {"Regex": pattern}}:
            yield pattern
        case {"type": "Split", "pattern": {"String": text}}:
            yield re.escape(text)
        case {"type": "ByteLevel", "add_prefix_space": False}:
            yield _GPT2 if part.get("use_regex", True) else ""
        case {"type": "Digits"}:
            yield r"\p{N}"
        case _:
            yield None
