"""Prometheus metrics of the detection service."""

from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

from ttmark.shared.schemas.detection import Verdict

MODES = ("combined", "direct", "aligned", "localized")
_LENGTH_BUCKETS = (16, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536)
# Equal steps: over texts without a watermark the p-value is uniform, so this histogram must stay flat.
_P_VALUE_BUCKETS = tuple(step / 20 for step in range(1, 21))


class DetectionMetrics:
    """Documents by mode and verdict, their lengths, hypotheses tried, p-values of what was not detected."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._documents = Counter(
            "ttmark_detect_documents", "Documents examined.", ["mode", "verdict"], registry=registry
        )
        self._tokens = Histogram(
            "ttmark_detect_document_tokens",
            "Length of examined documents in tokens.",
            ["mode"],
            buckets=_LENGTH_BUCKETS,
            registry=registry,
        )
        self._hypotheses = Counter(
            "ttmark_detect_hypotheses",
            "Keys, versions and phases tried, over all documents.",
            ["mode"],
            registry=registry,
        )
        self._p_values = Histogram(
            "ttmark_detect_not_detected_p_value",
            "P-values under the first key tried where nothing was found; flat while the null model holds.",
            ["mode"],
            buckets=_P_VALUE_BUCKETS,
            registry=registry,
        )

        for mode in MODES:
            for verdict in get_args(Verdict):
                self._documents.labels(mode, verdict)

    def document(
        self, mode: str, verdict: str, tokens: int, hypotheses: int, null_log10_p: float | None
    ) -> None:
        """Records one document.

        Args:
            mode: the detector's name.
            null_log10_p: p-value under one hypothesis that was chosen without looking at the evidence.
        """
        self._documents.labels(mode, verdict).inc()
        self._tokens.labels(mode).observe(tokens)
        self._hypotheses.labels(mode).inc(hypotheses)
        if verdict == "not_detected" and null_log10_p is not None:
            self._p_values.labels(mode).observe(10**null_log10_p)
