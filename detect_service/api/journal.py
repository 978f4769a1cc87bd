"""What is recorded of one detection request: metrics of its documents, and who used which keys for it."""

import math
from collections import Counter
from collections.abc import Sequence

from ttmark.detect_service.api.detection_metrics import DetectionMetrics
from ttmark.detect_service.options import route_of
from ttmark.detect_service.pipeline import Finding
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import InternalError
from ttmark.shared.keys.unlocked import HeldKey
from ttmark.shared.schemas.detection import DetectionResult
from ttmark.shared.vault.audit_events import AuditEvent, AuditSink

_HALF = math.log10(0.5)


class Journal:
    """Hears of a request's keys and results as `detect` comes to them.

    Args:
        route: what was asked, where that is not the route of the mode.
    """

    def __init__(self, mode: str, metrics: DetectionMetrics, route: str | None = None) -> None:
        self._mode = mode
        self._route = route or route_of(mode)
        self._metrics = metrics
        self._keys: tuple[str, ...] = ()
        self._tokens = 0
        self._verdicts: Counter[str] = Counter()

    def keys(self, keys: Sequence[HeldKey]) -> None:
        """All versions of these are tried."""
        self._keys = tuple(f"{key.key_id}/{version.version}" for key in keys for version in key.detectable)

    def document(self, result: DetectionResult, finding: Finding | None) -> None:
        """One document was examined, or refused."""
        self._verdicts[result.verdict] += 1
        if result.error is not None and result.error.code != InternalError.code:
            return  # the caller's to mend: operators hear of documents that fail
        null_log10_p = finding.null_log10_p if finding else None
        if result.p_value is None and null_log10_p is not None and null_log10_p < _HALF:
            # Who reads /metrics must not learn what its own verdicts hide; the drift of the null is read off
            # the upper half.
            null_log10_p = None
        self._metrics.document(self._mode, result.verdict, result.tokens, result.hypotheses, null_log10_p)
        self._tokens += result.tokens

    def close(self, caller: Principal, request_id: str, audit: AuditSink) -> None:
        """Writes the audit trail's event: no text, no secret."""
        audit(
            AuditEvent(
                "key.detect",
                token_id=caller.token_id,
                tenant=caller.tenant,
                request_id=request_id,
                route=self._route,
                tokens=self._tokens,
                keys=self._keys,
                verdicts=dict(self._verdicts),
            )
        )
