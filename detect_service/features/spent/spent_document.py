"""A document of a caller who sees verdicts alone: which rows are spent, and what was said of them."""

import hashlib
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.features.spent.document_rows import DocumentRows
from ttmark.detect_service.features.spent.spent_evidence import Keepsake, Standing, short
from ttmark.detect_service.verdict import DocumentFinding, typical_tokens
from ttmark.shared.keys.held_keys import ForeignKey, UnlockedKey
from ttmark.shared.limits.counting_filter import (
    SPENT,
    TURNING,
    WARM,
    AnswerRule,
    Names,
    Reason,
    Refusal,
    States,
)
from ttmark.shared.schemas.detection.detect import AskedBefore, DetectionResult, DocumentError
from ttmark.shared.watermark.detectors.block_scores import position_scores
from ttmark.shared.watermark.null_replacement import Redrawn
from ttmark.shared.watermark.prf import key_lanes

# Rows of a memory of what was not found; of a document that has more the first count.
MOST_ROWS = 4096
_HEAD = struct.Struct("<??ddI8s")
# A passage may have been edited at so many places, by so many tokens in all, and stand as it stood.
_OFFSETS = 4
_DRIFT = 16
_LOOKS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What was said of a document when rows of it were about to be spent.

    Attributes:
        spread: whether any nine tenths of what was found would have been found alone.
        at: when it was given, seconds since 1970.
        scope: 8 bytes that name the options, and the version that was found or all keys that found nothing.
        names: of rows in order [rows], 32 bits each: all that counted for a finding, else those about to be
            spent.
        places: where in the document they stand [rows].
    """

    found: bool
    spread: bool
    rate: float
    at: float
    tokens: int
    scope: bytes
    names: NDArray[np.uint32]
    places: NDArray[np.uint32]

    def packed(self) -> Keepsake:
        head = _HEAD.pack(self.found, self.spread, self.rate, self.at, self.tokens, self.scope)
        packed = head + self.names.astype("<u4").tobytes() + self.places.astype("<u4").tobytes()
        return Keepsake(packed, self.names, self.found)

    @classmethod
    def opened(cls, packed: bytes) -> "Memory":
        rows = np.frombuffer(packed[_HEAD.size :], dtype="<u4").reshape(2, -1)
        found, spread, rate, at, tokens, scope = _HEAD.unpack_from(packed)
        return cls(found, spread, rate, at, tokens, scope, rows[0], rows[1])

    def is_held(self, names: Names, usual: int) -> bool:
        """Whether a document with rows of these names holds what was found: nine tenths of it.

        Without a part that may have been found for itself: of so many tokens as texts usually need, a third
        in one neighbourhood. Else somebody's own text would count as found that stood beside such a part.
        """
        missing = ~np.isin(self.names, short(names))
        if np.count_nonzero(missing) > (1 - _HELD) * missing.size:
            return False
        gaps = _in_windows(np.flatnonzero(missing), missing.size, usual)
        return self.spread or bool(np.all(UNSEEN_SHARE * gaps < usual))

    def looks(self, names: Names, places: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
        """Which of a document's rows [rows] stood in the passage together as they stand now, look by look.

        Their order and their distances are the same, but for a few small edits: pieces of a passage that are
        dealt out otherwise are as many looks.
        """
        order = np.argsort(self.names, kind="stable")
        at = np.minimum(np.searchsorted(self.names[order], short(names)), self.names.size - 1)
        left: NDArray[np.bool_] = self.names[order][at] == short(names)
        offsets = self.places[order][at].astype(np.int64) - places
        for _ in range(_LOOKS):
            values, counts = np.unique(offsets[left], return_counts=True)
            if not values.size:
                return
            near = np.abs(values - values[np.argmax(counts)]) <= _DRIFT
            kept = values[near][np.argsort(-counts[near], kind="stable")[:_OFFSETS]]
            look = left & np.isin(offsets, kept)
            yield look
            left &= ~look


# A document that holds so much of a passage that was found is found.
_HELD = 0.9
# Rows from which on something is worth remembering.
_FEWEST_ROWS = 8
# Of the tokens that texts usually need for a finding so many parts are one too many.
UNSEEN_SHARE = 3
# A passage was looked at where the rest of the document was at most so many times as long as it is now: each
# factor of ten costs the search for passages a decade.
_LONGER = 10


@dataclass(frozen=True, slots=True, eq=False)
class SpentDocument:
    """Read and counted.

    Attributes:
        rows: of all its readings.
        is_searched: whether a passage is found wherever it begins: token ids may be read at one boundary.
        scope: 8 bytes that name keys and options, the rate left out, and whether it is a text.
        scopes: such bytes for each version by itself, by its key's id and number.
        exact: the document, for whom asks again.
        reads_back: whether its token ids are those of the text that they spell; None: unknown, or a text.
        unread: that it is too long; or why it could not be read, which is raised where it is answered.
        told: what is to be remembered of the documents of its request, as they are answered.
    """

    rows: DocumentRows
    standing: Standing
    rate: float
    is_searched: bool
    scope: bytes = b""
    scopes: Mapping[tuple[str, int], bytes] = field(default_factory=dict)
    exact: bytes = b""
    reads_back: bool | None = None
    unread: BaseException | DocumentError | None = None
    told: Sequence[Memory] = ()

    @property
    def counts(self) -> bool:
        return self.unread is None and self.standing.refusal is None

    @property
    def memories(self) -> list[Memory]:
        """Of the same options and keys, those of documents before it in its request among them.

        A finding is one version's, whatever others are tried; what was not found was not under all of them.
        """
        opened = [Memory.opened(packed) for packed in self.standing.memories]
        versions = set(self.scopes.values())
        return [
            one
            for one in [*opened, *self.told]
            if (one.scope in versions if one.found else one.scope == self.scope)
        ]

    def redrawn(self, key: UnlockedKey) -> list[Redrawn | None]:
        """The rows of each reading that are drawn from the null, by the question's own seed."""
        drawn: list[Redrawn | None] = []
        for index in range(len(self.rows.readers)):
            rows = self._states_of(self.rows.of_key(index, key)) >= SPENT
            drawn.append(Redrawn(rows, key_lanes(self.standing.seed)) if rows.any() else None)
        return drawn

    def spent_tokens(self, reader: DocumentReader, key: ForeignKey, row_tokens: int) -> NDArray[np.bool_]:
        """Tokens whose score, which depends on so many, is spent under a foreign mark [L]."""
        return self._states_of(self.rows.of_foreign_key(reader, key, row_tokens)) >= SPENT

    def _states_of(self, names: Names) -> States:
        if not self.rows.names.size:
            return np.zeros(names.size, dtype=np.uint8)
        found: States = self.standing.states[np.searchsorted(self.rows.names, names)]
        return found

    def found_before(self, keys: Sequence[UnlockedKey]) -> Memory | None:
        """A passage that was found at the rate or a finer one under a version of `keys`, and that is held."""
        for one in self.memories:
            if one.found and one.rate <= self.rate:
                watermarks = [key.profile.watermark() for key in keys]
                usual = min(typical_tokens(each, math.log10(one.rate)) for each in watermarks)
                if one.is_held(self.rows.names, usual):
                    return one
        return None

    def unseen(
        self, finding: DocumentFinding, keys: Sequence[UnlockedKey]
    ) -> tuple[Refusal | None, Memory | None]:
        """Whether what is spent and was not looked at might be why nothing was found; what looked at some.

        Spent rows of one neighbourhood, as long as texts usually need, count as looked at where they stood in
        one document without a finding as they stand now. A third of it and more might have made the
        difference.
        """
        usual = min(
            typical_tokens(reach.watermark, math.log10(self.rate) - math.log10(reach.correction))
            for reach in finding.reach
        )
        looked_at: Memory | None = None
        for key in keys:
            for index, reader in enumerate(self.rows.readers):
                names = self.rows.of_key(index, key)
                spent_rows = self._states_of(names) >= SPENT
                places = np.flatnonzero(spent_rows & _first_of_equals(names))
                if not places.size:
                    continue
                spent = _in_windows(places, names.size, usual)
                seen, most = np.zeros_like(spent), _FEWEST_ROWS
                for memory in self._without_finding(reader.token_ids(key).size):
                    for look in memory.looks(names[places], places):
                        seen = np.maximum(seen, _in_windows(places[look], names.size, usual))
                        if np.count_nonzero(look) >= most:
                            most, looked_at = int(np.count_nonzero(look)), memory
                if np.any(UNSEEN_SHARE * (spent - seen) >= usual):
                    return Refusal("spent", self.standing.wait_seconds), looked_at
        return None, looked_at

    def spent_rows(self, key: UnlockedKey) -> int:
        """Of the key's rows, each once, how many are spent, in the reading where most are."""
        of_readings = [self.rows.of_key(index, key) for index in range(len(self.rows.readers))]
        return max(
            (int(np.count_nonzero(self._states_of(np.unique(names)) >= SPENT)) for names in of_readings),
            default=0,
        )

    def _without_finding(self, tokens: int) -> list[Memory]:
        """Documents that were looked at as closely as one of so many tokens, at the rate or a coarser one."""
        return [
            memory
            for memory in self.memories
            if self.is_searched
            and not memory.found
            and memory.rate >= self.rate
            and memory.tokens <= _LONGER * tokens
        ]

    def about_to_be_spent(
        self, index: int, key: UnlockedKey, now: float, finding: DocumentFinding | None
    ) -> tuple[Memory, Redrawn] | None:
        """What to remember of reading number `index`, if it is time; and all but that, to be drawn."""
        names, found = self.rows.of_key(index, key), finding is not None
        states, first = self._states_of(names), _first_of_equals(names)
        asked = first & (states >= WARM) & (states < SPENT)
        due = np.count_nonzero(asked if found else states == TURNING)
        if due < _FEWEST_ROWS or (found and self.found_before([key]) is not None):
            return None
        places = np.flatnonzero(first & (states < SPENT)) if found else np.flatnonzero(asked)[:MOST_ROWS]
        rest = np.ones(names.size, dtype=np.bool_)
        rest[places] = False
        memory = Memory(
            found,
            False,
            self.rate,
            now,
            self.rows.readers[index].token_ids(key).size,
            self.scope if finding is None else self.scopes[key.key_id, finding.version.version],
            short(names[places]),
            places.astype(np.uint32),
        )
        return memory, Redrawn(rest, key_lanes(self.standing.seed))

    def without_the_best_tenth(self, kept: Redrawn, finding: DocumentFinding, index: int) -> Redrawn:
        """What remains of a passage at least where a document holds nine tenths of it."""
        key = finding.key
        prf_key = finding.version.prf_keys[finding.pool_key]
        tokens = self.rows.readers[index].token_ids(key)
        scores = position_scores(key.profile.watermark(), prf_key, tokens)
        places = np.flatnonzero(~kept.rows)
        best = places[np.argsort(-scores[places], kind="stable")]
        rows = kept.rows.copy()
        rows[best[: math.ceil((1 - _HELD) * places.size)]] = True
        return Redrawn(rows, kept.lanes)

    def described(self, result: DetectionResult, before: Memory | None) -> DetectionResult:
        """The result with what else is known: what was said before, and ids that do not read back."""
        changed: dict[str, object] = {}
        if before is not None:
            changed["asked_before"] = AskedBefore(
                verdict="watermarked" if before.found else "not_detected",
                at=before.at,
                tokens=before.names.size,
            )
        if self.reads_back is False:
            changed["reads_back"] = False
        return result.model_copy(update=changed) if changed else result

    def named(self, keys: Sequence[UnlockedKey]) -> dict[str, object] | None:
        """The spent rows and the seed, for somebody who has the keys to recompute the answer; None: none."""
        spent = []
        for key in keys:
            width = key.profile.context_width + key.profile.block_size
            for index, redrawn in enumerate(self.redrawn(key)):
                if redrawn is not None:
                    edges = np.flatnonzero(np.diff(np.concatenate([[0], redrawn.rows, [0]])))
                    spent.append(
                        {
                            "key_id": key.key_id,
                            "reading": self.rows.readers[index].names[0],
                            "row_tokens": width,
                            "rows": edges.reshape(-1, 2).tolist(),
                        }
                    )
        return {"seed": self.standing.seed.hex(), "spent": spent} if spent else None


@dataclass(frozen=True, slots=True)
class Counted:
    """The documents of a request, counted.

    Attributes:
        rule: what their caller may learn.
        memories: what is to be remembered of them, once they are answered.
        reasons: why some got no verdict.
    """

    documents: Sequence[SpentDocument]
    rule: AnswerRule
    memories: list[Memory] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


def _first_of_equals(names: Names) -> NDArray[np.bool_]:
    """Rows that stand nowhere before: what repeats is scored by words that no generator uses."""
    first = np.zeros(names.size, dtype=np.bool_)
    first[np.unique(names, return_index=True)[1]] = True
    return first


def _in_windows(places: NDArray[np.int64], rows: int, width: int) -> NDArray[np.int64]:
    """How many of the places stand in each run of `width` rows."""
    counts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=rows))])
    width = min(width, rows)
    runs: NDArray[np.int64] = counts[width:] - counts[: counts.size - width]
    return runs


def scope_of(options: bytes) -> bytes:
    """What names keys and options in a memory."""
    return hashlib.blake2b(options, digest_size=8).digest()
