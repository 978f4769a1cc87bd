"""The documents of a job are asked about in pieces; what is said of one names its place in the whole."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.access.token_limits import TokenLimits
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.limits.allowances import AskedDocuments, DocumentAllowance
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.limit_metrics import LimitMetrics
from ttmark.shared.limits.near_duplicates import Content, NearDuplicateThrottle, Sketch
from ttmark.shared.limits.variants import Refusal, VariantRule
from ttmark.shared.vault.audit import no_audit


class Refusing(NearDuplicateThrottle):
    """Refuses the document whose content is `no`, and remembers how many it was asked about at a time."""

    def __init__(self) -> None:
        rule = VariantRule(limit=1, window_seconds=60.0)
        super().__init__(LocalCounters(), key=b"k", rule=rule)
        self.pieces: list[int] = []

    def sketch(self, content: Content) -> Sketch:
        return Sketch(content.exact, np.zeros(0, dtype=np.uint64))

    async def admit(self, caller: Principal, sketches: Sequence[Sketch], *, rate: float) -> Refusal | None:
        self.pieces.append(len(sketches))
        digests = [sketch.digest for sketch in sketches]
        return Refusal("variants", digests.index(b"no"), 1.0) if b"no" in digests else None


@pytest.mark.parametrize(
    ("count", "bad", "pieces"), [(256, None, [256]), (600, None, [256, 256, 88]), (600, 300, [256, 256])]
)
async def test_pieces_of_256(count: int, bad: int | None, pieces: list[int]) -> None:
    throttle = Refusing()
    allowance: Any = DocumentAllowance(
        "detect",
        LocalCounters(),
        TokenLimits(requests_per_minute=0, documents_per_minute=0),
        LimitMetrics(CollectorRegistry()),
        no_audit,
        throttle=throttle,
    )
    contents = [
        Content(b"no" if index == bad else b"%d" % index, "", np.zeros(0, dtype=np.int64))
        for index in range(count)
    ]
    documents = AskedDocuments(count=count, rate=1e-5, size=count, read=lambda: contents)
    caller = Principal("t", "a", frozenset({Scope.DETECT}))
    if bad is None:
        await allowance.take(caller, documents)
    else:
        with pytest.raises(TooManyRequests, match="Document 300 holds") as refused:
            await allowance.take(caller, documents)
        assert refused.value.param == "inputs[300]"
    assert throttle.pieces == pieces
