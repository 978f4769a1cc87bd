"""Prometheus metrics of the detection service."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from shared.schemas.detection import DetectionResponse

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
            "P-values of documents in which no watermark was found; flat while the null model holds.",
            ["mode"],
            buckets=_P_VALUE_BUCKETS,
            registry=registry,
        )

    def observe_response(self, mode: str, response: DetectionResponse) -> None:
        """Records every document of an answer; `mode` is the detector's name."""
        for result in response.results:
            self._documents.labels(mode, result.verdict).inc()
            self._tokens.labels(mode).observe(result.tokens)
            self._hypotheses.labels(mode).inc(result.hypotheses)
            if result.verdict == "not_detected" and result.p_value is not None:
                self._p_values.labels(mode).observe(result.p_value)
