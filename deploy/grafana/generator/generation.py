"""What clients of the generation service experience, and what becomes of the watermark."""

from deploy.grafana.generator.layout import Dashboard, Panel, Query, Row
from deploy.grafana.generator.queries import API, buckets, mean, per_second, quantiles

GENERATION = Dashboard(
    uid="ttmark-generation",
    title="TTMark / Generation latency",
    description="Latency, outcomes and watermark coverage of completions.",
    rows=(
        Row(
            "Latency",
            (
                Panel(
                    "Time to first token",
                    "From submission to the first token: queue, prefill, first block.",
                    quantiles("ttmark_gen_time_to_first_token_seconds", 0.5, 0.95, 0.99),
                    unit="s",
                    bad_above=2.5,
                ),
                Panel(
                    "Time per output token",
                    "Mean over a completion's tokens after the first.",
                    quantiles("ttmark_gen_time_per_output_token_seconds", 0.5, 0.95, 0.99),
                    unit="s",
                ),
                Panel(
                    "Whole completions",
                    "From submission to the end.",
                    quantiles("ttmark_gen_completion_duration_seconds", 0.5, 0.95, 0.99),
                    unit="s",
                ),
                Panel(
                    "First tokens, distribution",
                    "Number of first tokens by the time they took.",
                    buckets("ttmark_gen_time_to_first_token_seconds"),
                    unit="s",
                    kind="heatmap",
                ),
                Panel(
                    "Queue",
                    "Time until the engine takes a completion up; it grows first when load is too high.",
                    quantiles("ttmark_engine_queue_seconds", 0.5, 0.95, 0.99),
                    unit="s",
                ),
                Panel(
                    "HTTP requests, mean duration",
                    "From the request's head to the end of the response, streams included.",
                    (mean("ttmark_http_request_duration_seconds", "route", f'job="ttmark-gen", {API}'),),
                    unit="s",
                ),
            ),
        ),
        Row(
            "Outcomes",
            (
                Panel(
                    "Completions by outcome",
                    "stop and length are good ends; cancelled is the client's; failed is ours.",
                    (per_second("ttmark_gen_completions_total", "outcome"),),
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Refused",
                    "Requests refused before or while running, by the code of the error.",
                    (per_second("ttmark_gen_rejections_total", "reason"),),
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Tokens",
                    "Tokens read and generated per second.",
                    (per_second("ttmark_gen_tokens_total", "kind"),),
                ),
                Panel(
                    "HTTP requests in flight",
                    "Requests being answered, streams included.",
                    (
                        Query(
                            'sum by (instance) (ttmark_http_requests_in_flight{job="ttmark-gen"})',
                            "{{instance}}",
                        ),
                    ),
                ),
                Panel(
                    "HTTP status",
                    "Answers by status.",
                    (per_second("ttmark_http_requests_total", "status", f'job="ttmark-gen", {API}'),),
                    unit="reqps",
                ),
            ),
        ),
        Row(
            "Watermark",
            (
                Panel(
                    "Responses by watermark status",
                    "unwatermarked needs the scope generate:unwatermarked, or greedy decoding.",
                    (per_second("ttmark_gen_watermarks_total", "status"),),
                    unit="reqps",
                    stacked=True,
                ),
                Panel(
                    "Blocks by what became of them",
                    "warm_up and repeated_context are by design; greedy means temperature 0.",
                    (per_second("ttmark_gen_blocks_total", "outcome"),),
                    stacked=True,
                ),
                Panel(
                    "Share of blocks watermarked",
                    "Low values make detection need longer texts.",
                    (Query("job:ttmark_gen_blocks_watermarked:ratio_rate5m", "{{job}}"),),
                    unit="percentunit",
                    bad_below=0.5,
                ),
            ),
        ),
    ),
)
