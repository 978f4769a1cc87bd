"""Which tokens may follow each other in a text as its own tokenizer splits it."""

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import BPE

from ttmark.gen_service.features.structured.grammars.pieces import Bits, Pieces, Place

Ints = NDArray[np.int32]

_NEVER = 2**31 - 1  # the rank of a merge that does not come
_AT_ONCE = 1 << 15  # merges, whose spines are a few MB
_KEPT = 1024  # tokens whose followers are remembered: 6 KB each with 50,000 tokens
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_STRUCTURE = frozenset('"{}[],:')


class Spelling:
    """Byte-pair encoding, asked of two neighbours: does it leave the seam between them alone?

    A sequence of tokens is what the encoding makes of its text if and only if each two neighbours are what it
    makes of theirs. They are not where a merge across the seam comes before the merges that take its two
    sides into something larger, unless a piece of the pre-tokenizer ends there (`Pieces`).

    What it knows of the vocabulary are tables of numbers; texts are the tokenizer's own.
    """

    def __init__(self, backend: Tokenizer, size: int) -> None:
        self._backend = backend
        self._model: BPE = backend.model
        self._size = size
        ids = backend.get_vocab(with_added_tokens=False)
        # Of each token its two parts, -1 where it has none, and the rank of the merge that makes it.
        self._parts: Ints = np.full((2, size), -1, np.int32)
        self._made: Ints = np.full(size, _NEVER, np.int32)
        self._made[[token for text, token in ids.items() if len(text) == 1]] = -1
        self._build(ids)
        self._sorted = np.array([ids[text] for text in sorted(ids)], np.int32)
        self.structural = np.array(sorted(i for text, i in ids.items() if text[-1:] in _STRUCTURE), np.int64)
        fallback = ids.items() if self._model.byte_fallback else ()
        self._bytes = {token: bytes.fromhex(text[3:5]) for text, token in fallback if _BYTE.fullmatch(text)}
        self._characters = {text for text in ids if len(text) == 1} | self._normalized()
        self._spelled_bytes = lru_cache(_KEPT)(self._begin_characters)
        self._reachable = self._made_at_all(ids.values())
        self._pieces = Pieces.of(backend, ids, size)
        self._unmerged = lru_cache(_KEPT)(self._leaves_alone)
        self.longer = lru_cache(_KEPT)(self._longer_than)

    @classmethod
    def of(cls, backend: Tokenizer) -> "Spelling | None":
        """Of a tokenizer; None where it does not merge pairs."""
        if not isinstance(backend.model, BPE):
            return None
        size = max(backend.get_vocab(with_added_tokens=True).values()) + 1
        return cls(backend, size)

    def after(self, place: Place) -> Bits:
        """What may follow, [(size + 7) // 8]."""
        allowed = self._unmerged(place.last)
        if self._pieces is not None:
            cut, joined = self._pieces.kinds(*place[1:])
            allowed = cut | joined & allowed
        return allowed & self._spelled_bytes(place.part)

    def along(self, place: Place, tokens: Iterable[int]) -> Place:
        """The place behind some more tokens."""
        for token in tokens:
            if self._pieces is None:
                part = place.part + self._bytes.get(token, b"")
                place = Place(token, part=part if token in self._bytes and len(_points(part)) > 1 else b"")
            else:
                merged = not self._unmerged(place.last)[token >> 3] >> (token & 7) & 1
                place = Place(token, *self._pieces.follow(*place[1:], token, merged))
        return place

    def begins(self, token: int, following: bytes) -> bool | None:
        """Whether a text of a token and what follows begins with this token; None: it cannot be told."""
        text = self._backend.decode([token], skip_special_tokens=False)
        try:
            ids = self._backend.encode(text + following.decode(), add_special_tokens=False).ids
        except UnicodeDecodeError:
            return None
        return None if "\ufffd" in text else ids[0] == token

    def shorter(self, token: int) -> Ints:
        """Tokens with whose text that of a token begins, the longest first."""
        text = self._model.id_to_token(token) or ""
        beginnings = (self._model.token_to_id(text[:cut]) for cut in range(len(text) - 1, 0, -1))
        return np.array([found for found in beginnings if found is not None], np.int32)

    def _longer_than(self, token: int) -> Ints:
        """Tokens whose text begins with that of a token and goes on."""
        text = self._model.id_to_token(token)
        ends = () if text is None else (text, text + chr(0x10FFFF))
        start, stop = (bisect_left(self._sorted, end, key=self._text) for end in ends) if ends else (-1, 0)
        return self._sorted[start + 1 : stop]

    def _text(self, token: np.int32) -> str:
        return self._model.id_to_token(int(token)) or ""

    def _leaves_alone(self, token: int | None) -> Bits:
        """Behind which tokens no merge comes across the seam."""
        found = np.ones(self._size, dtype=np.bool_)
        for _, part, end in self._spines(np.array([] if token is None else [token], np.int32), right=True):
            first, last = np.searchsorted(
                self._pairs, [int(part[0]) * self._size, (int(part[0]) + 1) * self._size]
            )
            here = np.arange(first, last)[self._ranks[first:last] < end[0]]
            found[self._beginning[_ranges(self._from[here], self._to[here])]] = False
        return np.packbits(found, bitorder="little")

    def _build(self, ids: Mapping[str, int]) -> None:
        """Reads merges; of several that make one token, the one that stands."""
        rows = np.fromiter(
            (ids.get(each, -1) for pair in _merges(self._model) for each in (*pair, "".join(pair))), np.int32
        ).reshape(-1, 3)
        ranks = np.flatnonzero((rows >= 0).all(axis=1)).astype(np.int32)
        left, right, whole = rows[ranks].T
        del rows
        # Pairs in their order, behind them one that is none.
        pairs = left.astype(np.int64) * self._size + right
        order = np.argsort(pairs, kind="stable")
        self._pairs = np.append(pairs[order], np.iinfo(np.int64).max)
        self._ranks: Ints = np.append(ranks[order], np.int32(_NEVER))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        lengths = np.zeros(self._size, np.int16)
        lengths[[*ids.values()]] = [min(len(text), 2**15 - 1) for text in ids]
        by_length = np.argsort(lengths[whole], kind="stable")  # the parts of a token are shorter than it
        for group in np.split(by_length, np.flatnonzero(np.diff(lengths[whole][by_length])) + 1):
            for some in np.split(group, range(_AT_ONCE, len(group), _AT_ONCE)):
                # Where a part is made later than it could merge, that comes at once.
                rank = np.maximum(ranks[some], np.maximum(self._made[left[some]], self._made[right[some]]))
                self._ranks[place[some]] = rank
                some, rank = some[rank < _NEVER], rank[rank < _NEVER]
                stands = self._stand(left[some], right[some], rank)
                some, rank = some[stands], rank[stands]
                np.minimum.at(self._made, whole[some], rank)
                some = some[self._made[whole[some]] == rank][::-1]  # of several the first
                self._parts[:, whole[some]] = left[some], right[some]
        self._by_beginning(right[order])

    def _stand(self, left: Ints, right: Ints, rank: Ints) -> NDArray[np.bool_]:
        """Whether two tokens come to stand side by side before a merge of this rank, [n] of each."""
        stands = np.ones(len(rank), np.bool_)
        for of, a, end_a in self._spines(left, right=True):
            for more, b, end_b in self._spines(right[of], right=False):
                pairs = a[more].astype(np.int64) * self._size + b
                place = np.searchsorted(self._pairs, pairs)
                crossing = np.where(self._pairs[place] == pairs, self._ranks[place], _NEVER)
                number = of[more]
                lost = (crossing < np.minimum(rank[number], end_a[more])) & (crossing <= end_b)
                stands[number[lost]] = False
        return stands

    def _spines(self, tokens: Ints, *, right: bool) -> Iterator[tuple[NDArray[np.int64], Ints, Ints]]:
        """The tokens at one edge of some while they are merged, each with the rank of the merge that ends it.

        From the whole inwards: the numbers of those that have one more, these tokens, and the ranks.
        """
        numbers = np.flatnonzero(self._made[tokens] < _NEVER)
        inner, ends = tokens[numbers], np.full(len(numbers), _NEVER, np.int32)
        while numbers.size:
            yield numbers, inner, ends
            ends, inner = self._made[inner], self._parts[int(right), inner]
            left = inner >= 0
            numbers, inner, ends = numbers[left], inner[left], ends[left]

    def _by_beginning(self, rights: Ints) -> None:
        """Of each merge the tokens that begin with its right side until it comes: a range of a table.

        Args:
            rights: of the merges, in the order of their pairs.
        """
        spines = [*self._spines(np.arange(self._size, dtype=np.int32), right=False)]
        tokens, parts, ends = (np.concatenate(each) for each in zip(*spines, strict=True))
        keys = parts.astype(np.int64) << 32 | _NEVER - ends
        order = np.argsort(keys, kind="stable")
        keys, self._beginning = keys[order], tokens[order].astype(np.int32)
        first = rights.astype(np.int64) << 32
        self._from = np.searchsorted(keys, first).astype(np.int32)
        last = first | _NEVER - self._ranks[:-1]
        self._to = np.searchsorted(keys, last, side="right").astype(np.int32)

    def _made_at_all(self, tokens: Collection[int]) -> NDArray[np.bool_]:
        """Not what the encoding never makes, since no merge leads to it, [size]."""
        reachable = np.ones(self._size, np.bool_)
        if not self._model.ignore_merges:  # else a piece that is a token stays one
            reachable[[*tokens]] = self._made[[*tokens]] < _NEVER
            reachable[[*self._bytes, *self._backend.get_added_tokens_decoder()]] = True
        return reachable

    def _normalized(self) -> set[str]:
        """Signs of ASCII that have no token and are no bytes either: a blank that is written as another."""
        signs = {token: raw.decode() for token, raw in self._bytes.items() if raw.isascii()}
        return {sign for token, sign in signs.items() if token not in self._backend.encode("a" + sign).ids}

    def _begin_characters(self, part: bytes) -> Bits:
        """What is ever made, but no bytes with which, behind some, all characters have tokens."""
        points = ((token, _points(part + byte)) for token, byte in self._bytes.items())
        found = self._reachable.copy()
        found[[t for t, those in points if all(chr(each) in self._characters for each in those)]] = False
        return np.packbits(found, bitorder="little")


def _merges(model: BPE) -> Iterator[tuple[str, str]]:
    """The merges in their order, one by one: all of them together are large."""
    before, state = b'"merges":[', model.__getstate__()
    text, decoder, place = state[state.index(before) + len(before) :].decode(), json.JSONDecoder(), 0
    while text[place] != "]":
        (first, second), place = decoder.raw_decode(text, place + (text[place] == ","))
        yield first, second


def _ranges(starts: Ints, stops: Ints) -> NDArray[np.int64]:
    sizes = (stops - starts).astype(np.int64)
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())


def _points(part: bytes) -> Collection[int]:
    """The code points whose UTF-8 begins with some bytes."""
    lead, size = part[0], 1 + sum(part[0] >= first for first in (0xC2, 0xE0, 0xF0))
    if 0x80 <= lead < 0xC2 or lead > 0xF4 or len(part) > size or any(not 0x80 <= b < 0xC0 for b in part[1:]):
        return ()
    first = lead & (0x7F, 0x1F, 0x0F, 0x07)[size - 1]
    for byte in part[1:]:
        first = first << 6 | byte & 0x3F
    rest = 6 * (size - len(part))
    least, most = (0, 0x80, 0x800, 0x10000)[size - 1], 0x110000
    return range(max(first << rest, least), min(first + 1 << rest, most))
