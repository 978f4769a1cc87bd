"""Slows down who queries a detector with many variants of one text.

Forging or removing a mark by trial takes many answers about almost one text. Each document with its options
is a question about every passage that it holds; a passage may be asked about so often in a while,
whatever stands around it. What is stored are bytes and sums under keyed hashes: no text, and nothing that a
reader of the store could compare with a text of its own.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.access.scopes import Principal
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.passages import mixed, passages_of_ids, passages_of_text
from ttmark.shared.limits.variants import (
    CELLS,
    DIGEST_BYTES,
    FINDINGS_UNIT,
    Inquiry,
    Question,
    Refusal,
    VariantRule,
)
from ttmark.shared.vault.confidential import Confidential

# Tokens with `detect:evidence` see scores: this slows them down and is no defence.
EVIDENCE_RULE = VariantRule(limit=50, window_seconds=600.0)

# A document of less, some ten words, is the passage of nothing longer: it counts by its rate alone.
_FEWEST_PASSAGES = 3


@dataclass(frozen=True, slots=True)
class Content:
    """What the throttle looks at of a document.

    Attributes:
        exact: the document and the options that it was sent with; equal only for an exact repetition.
        letters: its text, folded until only what a reader could not miss tells two texts apart.
        token_ids: [tokens] where it came as such, and what they spell is not or not wholly known; else empty.
    """

    exact: bytes
    letters: str
    token_ids: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sketch:
    """A document's keyed digest, and the names of its passages [passages]."""

    digest: bytes
    passages: NDArray[np.uint64]


class NearDuplicateThrottle(Confidential):
    """Limits what a caller may ask about one passage, and by how many chance findings it may profit.

    Repeating exactly the same question is free: it tells the caller nothing new.

    Args:
        key: names what is counted; the same in all replicas, unknown to readers of the store.
        rule: for callers who see verdicts alone.
        evidence_rule: for those who see scores.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        key: bytes,
        rule: VariantRule,
        evidence_rule: VariantRule = EVIDENCE_RULE,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._key = key
        self._rule = rule
        self._evidence_rule = evidence_rule
        self._now = now
        self._seed = int.from_bytes(self._hash(b"seed", b""), "big")

    def rule_of(self, caller: Principal) -> VariantRule:
        """The rule that `caller` is held to."""
        return self._evidence_rule if caller.sees_evidence else self._rule

    def sketch(self, content: Content) -> Sketch:
        """The sketch of a document, in time linear in its length."""
        passages = np.concatenate(
            [
                passages_of_text(content.letters, self._seed),
                passages_of_ids(content.token_ids, self._seed),
            ]
        )
        if len(passages) < _FEWEST_PASSAGES:
            passages = passages[:0]
        return Sketch(self._hash(b"exact", content.exact), passages)

    async def admit(self, caller: Principal, sketches: Sequence[Sketch], *, rate: float) -> Refusal | None:
        """None when all documents of a request are admitted; else why not, and none of them counts.

        Args:
            rate: the false positive rate that they are asked at.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        name = self._hash(b"caller", caller.token_id.encode())
        salt = np.frombuffer(name, dtype=np.uint64)
        questions = [
            Question(
                (int.from_bytes(sketch.digest, "big") ^ int.from_bytes(name, "big")).to_bytes(
                    DIGEST_BYTES, "big"
                ),
                (mixed(sketch.passages ^ salt) % np.uint64(CELLS)).astype(np.uint32),
            )
            for sketch in sketches
        ]
        kind = b"evidence" if caller.sees_evidence else b"verdict"
        return await self._counters.ask(
            Inquiry(
                space=self._hash(b"space " + kind, caller.tenant.encode()).hex(),
                caller=name.hex(),
                questions=questions,
                rule=self.rule_of(caller),
                price=0 if caller.sees_evidence else round(rate / FINDINGS_UNIT),
                now=self._now(),
            )
        )

    def _hash(self, purpose: bytes, content: bytes) -> bytes:
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES, key=self._key, person=b"ttmark near")
        digest.update(purpose + b":")
        digest.update(content)
        return digest.digest()
