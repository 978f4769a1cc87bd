"""Which tokens may follow each other in a text as its own tokenizer splits it."""

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import BPE

from ttmark.gen_service.decoding.pieces import CUT, JOINED, Pieces, Place

Bits = NDArray[np.uint8]
"""A bit per token, the first token lowest."""
Spine = list[tuple[int, int]]
"""The tokens at one edge of a token while it is merged: each with the rank of the merge that ends it."""

_NEVER = 1 << 40  # the rank of a merge that does not come
_KEPT = 1024  # tokens whose followers are remembered: 6 KB each with 50,000 tokens
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_STRUCTURE = frozenset('"{}[],:')


class Spelling:
    """Byte-pair encoding, asked of two neighbours: does it leave the seam between them alone?

    A sequence of tokens is what the encoding makes of its text if and only if each two neighbours are what it
    makes of theirs. They are not where a merge across the seam comes before the merges that take its two
    sides into something larger, unless a piece of the pre-tokenizer ends there (`Pieces`).
    """

    def __init__(self, backend: Tokenizer, size: int) -> None:
        self._backend = backend
        model = json.loads(backend.to_str())["model"]
        self._ids: dict[str, int] = model["vocab"]
        self._texts = {token: text for text, token in self._ids.items()}
        self._size = size
        self._merges: dict[int, list[tuple[int, int]]] = defaultdict(list)  # right sides, ranks
        self._left: dict[int, Spine] = {}  # while it is built
        self._right: dict[int, Spine] = {}
        self._after: dict[Place, Bits] = {}
        self._unmerged: dict[int | None, NDArray[np.bool_]] = {}
        self._longer: dict[int, NDArray[np.int64]] = {}
        self._sorted = sorted(self._ids)
        fallback = self._ids.items() if model.get("byte_fallback") else ()
        self._bytes = {token: bytes.fromhex(text[3:5]) for text, token in fallback if _BYTE.fullmatch(text)}
        self._characters = {text for text in self._ids if len(text) == 1} | self._normalized()
        self._misspelled: dict[bytes, NDArray[np.int64]] = {}
        self._build(model["merges"])
        # A piece that is a token stays one where merges are ignored, however it would be merged.
        everything = () if model.get("ignore_merges") else self._ids.values()
        made = self._left.keys() | backend.get_added_tokens_decoder().keys() | self._bytes.keys()
        self._never = np.array(sorted(set(everything) - made), np.int64)
        """Tokens that the encoding never makes, since no merge leads to them."""
        self._beginnings = self._by_beginning()
        self._left = {}
        self._pieces = Pieces.of(backend, self._texts, size)
        self.structural = np.array(
            sorted(i for text, i in self._ids.items() if text[-1:] in _STRUCTURE), np.int64
        )

    @classmethod
    def of(cls, backend: Tokenizer) -> "Spelling | None":
        """Of a tokenizer; None where it does not merge pairs."""
        if not isinstance(backend.model, BPE):
            return None
        size = max(backend.get_vocab(with_added_tokens=True).values()) + 1
        return cls(backend, size)

    def after(self, place: Place) -> Bits:
        """What may follow, [(size + 7) // 8]."""
        found = self._after.get(place)
        if found is None:
            allowed = self._leaves_alone(place.last).copy()
            if self._pieces is not None:
                kinds = self._pieces.kinds(*place[1:])
                allowed = np.where(kinds == JOINED, allowed, kinds == CUT)
            allowed[self._never] = False
            allowed[self._misspelled_bytes(place.part)] = False
            found = np.packbits(allowed, bitorder="little")
            if len(self._after) >= _KEPT:
                self._after = {}  # a new one, since two threads may be in here
            self._after[place] = found
        return found

    def along(self, place: Place, tokens: Iterable[int]) -> Place:
        """The place behind some more tokens."""
        for token in tokens:
            if self._pieces is None:
                part = place.part + self._bytes.get(token, b"")
                place = Place(token, part=part if token in self._bytes and len(_points(part)) > 1 else b"")
            else:
                merged = not self._leaves_alone(place.last)[token]
                place = self._pieces.follow(place, token, merged=merged)
        return place

    def begins(self, token: int, following: bytes) -> bool | None:
        """Whether a text of a token and what follows begins with this token; None: it cannot be told."""
        text = self._backend.decode([token], skip_special_tokens=False)
        try:
            ids = self._backend.encode(text + following.decode(), add_special_tokens=False).ids
        except UnicodeDecodeError:
            return None
        return None if "\ufffd" in text else ids[0] == token

    def longer(self, token: int) -> NDArray[np.int64]:
        """Tokens whose text begins with that of a token and goes on."""
        found = self._longer.get(token)
        if found is None:
            text = self._texts.get(token)
            limits = () if text is None else (text, text + chr(0x10FFFF))
            start, stop = (bisect_left(self._sorted, limit) for limit in limits) if limits else (0, 1)
            longer = [self._ids[other] for other in self._sorted[start + 1 : stop]]
            found = self._longer[token] = np.array(longer, np.int64)
        return found

    def shorter(self, token: int) -> NDArray[np.int64]:
        """Tokens with whose text that of a token begins, the longest first."""
        text = self._texts.get(token, "")
        beginnings = (self._ids.get(text[:cut]) for cut in range(len(text) - 1, 0, -1))
        return np.array([found for found in beginnings if found is not None], np.int64)

    def _leaves_alone(self, token: int | None) -> NDArray[np.bool_]:
        """Behind which tokens no merge comes across the seam, [size]."""
        found = self._unmerged.get(token)
        if found is None:
            found = np.ones(self._size, dtype=np.bool_)
            for left, end in self._right.get(token, ()) if token is not None else ():
                for right, rank in self._merges.get(left, ()):
                    if rank < end:
                        starts, ends, tokens = self._beginnings
                        begin, stop = starts[right : right + 2]
                        stop = begin + np.searchsorted(ends[begin:stop], -rank, side="right")
                        found[tokens[begin:stop]] = False
            if len(self._unmerged) >= _KEPT:
                self._unmerged = {}
            self._unmerged[token] = found
        return found

    def _build(self, merges: list[Any]) -> None:
        """Reads merges in their order; of several that make one token, the one that stands."""
        for text, token in self._ids.items():
            if len(text) == 1:
                self._left[token] = self._right[token] = [(token, _NEVER)]
        ranks: dict[tuple[int, int], int] = {}
        waiting: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for rank, merge in enumerate(merges):
            first, second = merge.split(" ") if isinstance(merge, str) else merge
            left, right, whole = (self._ids.get(text) for text in (first, second, first + second))
            if left is None or right is None or whole is None:
                continue
            due = [(left, right, whole)]
            for left, right, whole in due:
                if (part := left) not in self._left or (part := right) not in self._left:
                    waiting[part].append((left, right, whole))  # it comes at once when that is made
                    continue
                if whole not in self._left and self._stands(left, right, rank, ranks):
                    self._left[whole] = [(whole, _NEVER), (left, rank), *self._left[left][1:]]
                    self._right[whole] = [(whole, _NEVER), (right, rank), *self._right[right][1:]]
                    due += waiting.pop(whole, [])
                ranks[left, right] = rank
                self._merges[left].append((right, rank))

    def _stands(self, left: int, right: int, rank: int, ranks: Mapping[tuple[int, int], int]) -> bool:
        """Whether two tokens come to stand side by side before a merge of this rank."""
        return not any(
            (crossing := ranks.get((a, b), rank)) < min(rank, end_a) and crossing <= end_b
            for a, end_a in self._right[left]
            for b, end_b in self._left[right]
        )

    def _normalized(self) -> set[str]:
        """Signs of ASCII that have no token and are no bytes either: a blank that is written as another."""
        signs = {token: raw.decode() for token, raw in self._bytes.items() if raw.isascii()}
        return {sign for token, sign in signs.items() if token not in self._backend.encode("a" + sign).ids}

    def _misspelled_bytes(self, part: bytes) -> NDArray[np.int64]:
        """Tokens of bytes with which, behind some, no character begins but those that have tokens."""
        found = self._misspelled.get(part)
        if found is None:
            points = ((token, _points(part + byte)) for token, byte in self._bytes.items())
            wrong = [t for t, those in points if all(chr(each) in self._characters for each in those)]
            found = self._misspelled[part] = np.array(wrong, np.int64)
        return found

    def _by_beginning(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Tokens by what they begin with: where those of a token start [size + 1]; in order minus the ranks
        at which it ends in them, rising, and the tokens.
        """
        spines = self._left.items()
        flat = (number for token, spine in spines for part, end in spine for number in (part, -end, token))
        parts, ends, tokens = np.fromiter(flat, np.int64).reshape(-1, 3).T
        order = np.lexsort((tokens, ends, parts))
        starts = np.searchsorted(parts[order], np.arange(self._size + 1))
        return starts, ends[order], tokens[order]


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
