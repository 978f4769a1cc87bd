"""Counts the answers about every row of evidence, so that evidence is spent.

Forging or removing a mark by trial takes many answers about the same evidence. A detector's score is a sum
over rows, each a context with its block: however a text is cut up and dealt out, its rows stay the same. So
each document counts for every row that it holds before it is scored, and a row that was in a dozen answers
tells nothing more: it is spent. What is stored are bytes and sums under keyed hashes: no text, and nothing
that a reader of the store could compare with a text of its own.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.access.scopes import Principal
from ttmark.shared.batches import batches
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.counting_filter import (
    CELLS,
    DIGEST_BYTES,
    FINDINGS_UNIT,
    LASTING,
    WARM,
    AnswerRule,
    CountedDocument,
    Inquiry,
    Names,
    Refusal,
    Reply,
    States,
)
from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.watermark.likelihood.forward_backward_numpy import finalised

# The script of a call serves nobody else meanwhile: some ten milliseconds.
_CELLS_AT_ONCE = 16_384
# So few rows carry no passage that could be remembered.
_FEWEST_ROWS = 8
# Of each four rows one is kept in an index of memories, of longer passages fewer.
_INDEXED = 4
# Of memories in half a day, findings and misses apart: what one caller may keep, and a tenant's together. One
# of so many rows counts for one, a longer one for several.
_MOST_MEMORIES = (250, 1_000)
_MEMORY_ROWS = 4_096
# The memories that an index names of a row, latest first, and those that are looked at for a document.
_MOST_NAMED = 16
_MOST_RECALLED = 32


@dataclass(frozen=True, slots=True, eq=False)
class AskedRows:
    """A document for the ledger: `exact`, equal for an exact repetition alone, and `names` of rows [rows]."""

    exact: bytes
    names: Names


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What the ledger says of a document.

    Attributes:
        seed: 16 bytes of the question's own, from which the scores of spent rows are drawn.
        states: of its rows [rows].
        refusal: why it is not scored at all.
        memories: what was kept of passages in which rows stood that were asked about often.
        wait_seconds: until its spent rows count again.
    """

    seed: bytes
    states: States
    refusal: Refusal | None
    memories: Sequence[bytes] = ()
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Keepsake:
    """What is kept of a passage, to be recalled by the short names of its rows [rows]."""

    packed: bytes
    names: NDArray[np.uint32]
    found: bool


class AnswerLedger(Confidential):
    """Limits what a tenant's callers may learn of a row, and by how many chance findings they may profit.

    Repeating exactly the same question is free: it is answered with the states of the first time.

    Args:
        key: names what is counted and draws what is spent; the same in all replicas, unknown to readers of
            the store, and no key of a watermark.
        rule: for all of a tenant's callers together.
        each: answers that one asker may have about a row besides; None: no such limit.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        key: bytes,
        rule: AnswerRule,
        each: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._key = key
        self._each = each
        self._now = now
        self.rule = rule
        self.row_seed = int.from_bytes(self.hash(b"rows", b""), "big")
        """Secret bits that name rows."""

    async def ask(
        self, caller: Principal, documents: Sequence[AskedRows], *, rate: float, asker: str = ""
    ) -> list[Standing]:
        """Counts the documents of a request, each for itself.

        Args:
            asker: who asks, where each has a limit.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        layers = [b"all"] if self._each is None else [b"each " + asker.encode(), b"all"]
        salts = [np.uint64(int.from_bytes(self.hash(b"layer", layer), "big")) for layer in layers]
        inquiry = self._inquiry(caller)
        price = round(rate / FINDINGS_UNIT)
        questions: list[list[CountedDocument]] = []
        for document in documents:
            # Each asker's own: what is spent for one is not for another.
            digest = self.hash(b"exact " + layers[0], document.exact)
            cells = np.stack([mixed(document.names ^ salt) % np.uint64(CELLS) for salt in salts])
            questions.append(list(_slices(digest, cells.astype(np.uint32), price)))
        replies: list[Reply] = []
        for piece in batches(chain.from_iterable(questions), lambda one: one.cells.size, _CELLS_AT_ONCE):
            replies += await self._counters.ask(replace(inquiry, questions=piece))
        standings, first = [], 0
        for document, of_document in zip(documents, questions, strict=True):
            own = replies[first : first + len(of_document)]
            first += len(own)
            standings.append(await self._standing(inquiry, document, own))
        return standings

    async def remember(self, caller: Principal, memories: Sequence[Keepsake], *, asker: str = "") -> None:
        """Keeps what was said of passages, for as long as their rows are counted, where there is room.

        Findings and misses have a room each, of which every caller has a part. Raises as `ask`.
        """
        inquiry = self._inquiry(caller)
        name, lifetime = _memories(inquiry, inquiry.generation), inquiry.window_seconds
        whose = self.hash(b"room", (asker or caller.token_id).encode()).hex()
        for memory in memories:
            units = -(-memory.names.size // _MEMORY_ROWS)
            room = f"{name}:{_kind(memory.found)}"
            for counter, most in zip((f"{room}:{whose}", room), _MOST_MEMORIES, strict=True):
                kept = await self._counters.add(counter, units, lifetime_seconds=lifetime)
                if kept[0] > most:
                    break
            else:
                identity = self.hash(b"memory", memory.packed)
                indexed = memory.names[memory.names % np.uint32(_INDEXED * units) == 0]
                fields = _fields(indexed, memory.found)
                known = await self._counters.get(f"{name}:said", fields) if fields else []
                named = [(identity + (old or b""))[: _MOST_NAMED * DIGEST_BYTES] for old in known]
                values = {identity: memory.packed, **dict(zip(fields, named, strict=True))}
                await self._counters.put(f"{name}:said", values, lifetime_seconds=lifetime)

    def _inquiry(self, caller: Principal) -> Inquiry:
        whose = caller.token_id if self._each is None else ""
        return Inquiry(
            # The number is that of the form of memories: what has another one is forgotten, counts and all.
            space=self.hash(b"space 2", caller.tenant.encode()).hex(),
            caller=self.hash(b"caller", whose.encode()).hex(),
            questions=(),
            limits=[self.rule.limit] if self._each is None else [self._each, self.rule.limit],
            window_seconds=self.rule.window_seconds,
            findings=self.rule.findings,
            now=self._now(),
        )

    async def _standing(self, inquiry: Inquiry, document: AskedRows, replies: Sequence[Reply]) -> Standing:
        states = np.concatenate([reply.states for reply in replies])
        refusal = next((one.refusal for one in replies if one.refusal is not None), None)
        asked = states >= WARM
        memories: Sequence[bytes] = ()
        if refusal is None and np.count_nonzero(asked) >= _FEWEST_ROWS:
            memories = await self._recalled(inquiry, short(document.names[asked]))
        return Standing(
            self.hash(b"draw " + inquiry.space.encode(), document.exact, 16),
            states,
            refusal,
            memories,
            inquiry.wait_seconds(lasting=bool(np.any(states == LASTING))),
        )

    async def _recalled(self, inquiry: Inquiry, rows: NDArray[np.uint32]) -> list[bytes]:
        """The memories in which some of the rows stood: of findings and of misses those with most of them."""
        indexed = rows[rows % np.uint32(_INDEXED) == 0]
        fields = _fields(indexed, True) + _fields(indexed, False)
        memories: list[bytes] = []
        for generation in (inquiry.generation, inquiry.generation - 1):
            name = f"{_memories(inquiry, generation)}:said"
            named = await self._counters.get(name, fields) if fields else []
            identities: list[bytes] = []
            for half in (named[: indexed.size], named[indexed.size :]):
                each = np.frombuffer(b"".join(one for one in half if one), dtype=np.uint64)
                values, counts = np.unique(each, return_counts=True)
                most = values[np.argsort(-counts, kind="stable")[:_MOST_RECALLED]]
                identities += [one.tobytes() for one in most]
            if identities:
                said = await self._counters.get(name, identities)
                memories += [packed for packed in said if packed is not None]
        return memories

    def hash(self, purpose: bytes, content: bytes, size: int = DIGEST_BYTES) -> bytes:
        digest = hashlib.blake2b(digest_size=size, key=self._key, person=b"ttmark answers")
        digest.update(purpose + b":")
        digest.update(content)
        return digest.digest()


def _memories(inquiry: Inquiry, generation: int) -> str:
    return f"memory:{inquiry.space}:{generation}"


def _kind(found: bool) -> str:
    return "found" if found else "missed"


def _fields(rows: NDArray[np.uint32], found: bool) -> list[bytes]:
    """Where an index says in which memories of a kind the rows stand."""
    return [b"%b %d" % (_kind(found).encode(), row) for row in rows.tolist()]


def _slices(digest: bytes, cells: NDArray[np.uint32], price: int) -> Iterator[CountedDocument]:
    """A document's question; of a long document several, so that none holds the store up."""
    step = _CELLS_AT_ONCE // len(cells)
    for number, first in enumerate(range(0, max(1, cells.shape[1]), step)):
        part = (int.from_bytes(digest, "big") ^ number).to_bytes(DIGEST_BYTES, "big")
        yield CountedDocument(part, cells[:, first : first + step], 0 if number else price)


def short(names: Names) -> NDArray[np.uint32]:
    """32 bits of each name, others than choose its counter."""
    return (names >> np.uint64(32)).astype(np.uint32)


def mixed(values: Names) -> Names:
    """A permutation of 64 bits in which every bit depends on all."""
    return finalised(values + np.uint64(0x9E3779B97F4A7C15))
