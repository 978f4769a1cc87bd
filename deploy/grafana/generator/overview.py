"""Is all well? Objectives, traffic, and what the live check says."""

from deploy.grafana.generator.layout import Dashboard, Panel, Query, Row
from deploy.grafana.generator.queries import API, RATE, per_second, quantiles


def _without_errors(job: str) -> Query:
    return Query(f'1 - avg_over_time(job:ttmark_http_errors:ratio_rate5m{{job="{job}"}}[$__range])')


OVERVIEW = Dashboard(
    uid="ttmark-overview",
    title="TTMark / Overview",
    description="Objectives, traffic and live check of both services. Start here.",
    rows=(
        Row(
            "Objectives",
            (
                Panel(
                    "Generation without 5xx",
                    "Share of requests answered without a 5xx over the shown time; the objective is 99.9 %.",
                    (_without_errors("ttmark-gen"),),
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=5,
                    bad_below=0.999,
                ),
                Panel(
                    "Detection without 5xx",
                    "Share of requests answered without a 5xx over the shown time; the objective is 99.9 %.",
                    (_without_errors("ttmark-detect"),),
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=5,
                    bad_below=0.999,
                ),
                Panel(
                    "First token in time",
                    "Share of first tokens within 2.5 s over the shown time; the objective is 95 %.",
                    (Query("avg_over_time(job:ttmark_gen_first_token_in_time:ratio_rate5m[$__range])"),),
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=5,
                    bad_below=0.95,
                ),
                Panel(
                    "Detection in time",
                    "Share of direct detections within 0.25 s over the shown time; the objective is 99 %.",
                    (Query("avg_over_time(job:ttmark_detect_direct_in_time:ratio_rate5m[$__range])"),),
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=5,
                    bad_below=0.99,
                ),
                Panel(
                    "Blocks watermarked",
                    "Share of generated blocks that carry the watermark, last 5 minutes.",
                    (Query("job:ttmark_gen_blocks_watermarked:ratio_rate5m"),),
                    unit="percentunit",
                    kind="stat",
                    width=4,
                    height=5,
                    bad_below=0.5,
                ),
                Panel(
                    "Firing alerts",
                    "Number of TTMark's alerts that fire now.",
                    (
                        Query(
                            'count(ALERTS{alertname=~"TTMark.+", alertstate="firing"}) or vector(0)', "alerts"
                        ),
                    ),
                    unit="none",
                    kind="stat",
                    width=4,
                    height=5,
                    bad_above=1,
                ),
            ),
        ),
        Row(
            "Traffic",
            (
                Panel(
                    "Requests",
                    "Requests to the API by service.",
                    (Query("job:ttmark_http_requests:rate5m", "{{job}}"),),
                    unit="reqps",
                ),
                Panel(
                    "Requests by status",
                    "4xx are clients' errors, 429 overload or throttling, 5xx ours.",
                    (per_second("ttmark_http_requests_total", "job, status", API),),
                    unit="reqps",
                ),
                Panel(
                    "Share of 5xx",
                    "Above the line the month's error budget burns fast enough to page somebody.",
                    (Query("job:ttmark_http_errors:ratio_rate5m", "{{job}}"),),
                    unit="percentunit",
                    bad_above=0.0144,
                ),
                Panel(
                    "Tokens",
                    "Tokens of prompts read and of completions generated per second.",
                    (per_second("ttmark_gen_tokens_total", "kind"),),
                ),
                Panel(
                    "Time to first token",
                    "As a client sees it, queue included.",
                    quantiles("ttmark_gen_time_to_first_token_seconds", 0.5, 0.95, 0.99),
                    unit="s",
                    bad_above=2.5,
                ),
                Panel(
                    "Detection latency",
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
            ),
        ),
        Row(
            "Live check and processes",
            (
                Panel(
                    "Live check",
                    "Each minute a text is generated and must be detected, and a human's text must not.",
                    (Query(f"sum by (outcome) (increase(ttmark_canary_runs_total{RATE}))", "{{outcome}}"),),
                    stacked=True,
                ),
                Panel(
                    "Evidence in the live check",
                    "log10 of the p-value: far below 0 for the generated text, near 0 for the human's.",
                    (Query("ttmark_canary_log10_p_value", "{{text}}"),),
                    unit="none",
                ),
                Panel(
                    "Readiness",
                    "1 for each condition that holds; a service with a 0 takes no requests.",
                    (Query("min by (job, check) (ttmark_ready)", "{{job}} {{check}}"),),
                    bad_below=1,
                ),
                Panel(
                    "Instances",
                    "Processes that answer Prometheus.",
                    (Query('sum by (job) (up{job=~"ttmark-.+"})', "{{job}}"),),
                ),
                Panel(
                    "CPU",
                    "Cores in use by each process.",
                    (
                        Query(
                            f'rate(process_cpu_seconds_total{{job=~"ttmark-.+"}}{RATE})',
                            "{{job}} {{instance}}",
                        ),
                    ),
                ),
                Panel(
                    "Memory",
                    "Resident memory of each process; it must not grow without end.",
                    (Query('process_resident_memory_bytes{job=~"ttmark-.+"}', "{{job}} {{instance}}"),),
                    unit="bytes",
                ),
            ),
        ),
    ),
)
