"""Detection: verdicts, latency, and whether the promised false-positive rate still holds."""

from deploy.grafana.generator.layout import Dashboard, Panel, Query, Row
from deploy.grafana.generator.queries import API, buckets, mean, per_second, quantiles, ratio

_P = "ttmark_detect_not_detected_p_value"

DETECTION = Dashboard(
    uid="ttmark-detection",
    title="TTMark / Detection and false positives",
    description="Verdicts and latency of detection, and the drift of p-values of texts without a watermark.",
    rows=(
        Row(
            "Verdicts",
            (
                Panel(
                    "Documents by verdict",
                    "Documents examined per second.",
                    (per_second("ttmark_detect_documents_total", "mode, verdict"),),
                    stacked=True,
                ),
                Panel(
                    "Share watermarked",
                    "Share of documents in which a watermark was found.",
                    (
                        ratio(
                            'ttmark_detect_documents_total{verdict="watermarked"}',
                            "ttmark_detect_documents_total",
                            "mode",
                        ),
                    ),
                    unit="percentunit",
                ),
                Panel(
                    "Document length",
                    "Tokens; short documents cannot be decided.",
                    quantiles("ttmark_detect_document_tokens", 0.5, 0.95),
                ),
            ),
        ),
        Row(
            "False positives",
            (
                Panel(
                    "P-values of what was not detected",
                    "Every line the same height while the null model holds: equal shares of equal intervals.",
                    buckets(_P),
                    kind="heatmap",
                    unit="none",
                ),
                Panel(
                    "Upper half of the p-values",
                    "Of the p-values above 0.5 of an hour, the share above 0.75: 0.5 while the null holds. "
                    "Edited watermarked texts do not move it.",
                    (Query("mode:ttmark_detect_upper_p_values:share1h", "{{mode}}"),),
                    unit="percentunit",
                    bad_below=0.45,
                    bad_above=0.55,
                ),
                Panel(
                    "Small p-values",
                    "Share with p <= 0.05 of what was not detected: 0.05, more if marked texts were edited.",
                    (Query("mode:ttmark_detect_small_p_values:share1h", "{{mode}}"),),
                    unit="percentunit",
                    bad_above=0.2,
                ),
                Panel(
                    "P-values behind these figures",
                    "P-values above 0.5 in the last hour; below 100 nothing can be said.",
                    (Query("mode:ttmark_detect_upper_p_values:increase1h", "{{mode}}"),),
                ),
                Panel(
                    "Hypotheses",
                    "Keys, versions and phases tried for each document; p-values are corrected for them.",
                    (ratio("ttmark_detect_hypotheses_total", "ttmark_detect_documents_total", "mode"),),
                ),
            ),
        ),
        Row(
            "Requests",
            (
                Panel(
                    "Latency",
                    "By detector.",
                    quantiles(
                        "ttmark_http_request_duration_seconds",
                        0.5,
                        0.99,
                        selector='route=~"/v1/detect/.+"',
                        by="route",
                    ),
                    unit="s",
                ),
                Panel(
                    "Mean duration",
                    "By route.",
                    (mean("ttmark_http_request_duration_seconds", "route", f'job="ttmark-detect", {API}'),),
                    unit="s",
                ),
                Panel(
                    "Status",
                    "429 is throttling: overload, or many almost equal texts from one token.",
                    (per_second("ttmark_http_requests_total", "status", f'job="ttmark-detect", {API}'),),
                    unit="reqps",
                ),
            ),
        ),
    ),
)
