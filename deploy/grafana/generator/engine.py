"""What the engine does with its time, its rows and its cache."""

from deploy.grafana.generator.layout import Dashboard, Panel, Query, Row
from deploy.grafana.generator.queries import buckets, mean, per_second, quantiles, ratio

ENGINE = Dashboard(
    uid="ttmark-engine",
    title="TTMark / Engine",
    description="Load, steps, candidates and cache of the generation engine.",
    rows=(
        Row(
            "Load",
            (
                Panel(
                    "Completions in hand",
                    "Running ones have a place in the steps; waiting ones are the queue that is scaled by.",
                    (Query("sum by (model, state) (ttmark_engine_requests)", "{{model}} {{state}}"),),
                    stacked=True,
                ),
                Panel(
                    "Cache in use",
                    "Share of the KV cache's rows that completions hold.",
                    (Query("model:ttmark_engine_kv_cache_used:ratio", "{{model}} {{instance}}"),),
                    unit="percentunit",
                    bad_above=0.95,
                ),
                Panel(
                    "Preemptions",
                    "Completions that gave up their rows and start again; 0 while the cache is large enough.",
                    (per_second("ttmark_engine_preemptions_total", "model"),),
                ),
            ),
        ),
        Row(
            "Steps",
            (
                Panel(
                    "Steps",
                    "Forward passes per second; 0 with completions in hand means that the engine is stuck.",
                    (per_second("ttmark_engine_step_rows_count", "model"),),
                ),
                Panel(
                    "Where the time goes",
                    "Seconds per second in the forward pass, in reweighting and drawing blocks, in the rest.",
                    (per_second("ttmark_engine_step_seconds_total", "part"),),
                    unit="percentunit",
                    stacked=True,
                ),
                Panel(
                    "Share of reweighting",
                    "Part of a step that the watermark's own arithmetic takes.",
                    (
                        ratio(
                            'ttmark_engine_step_seconds_total{part="reweight"}',
                            "ttmark_engine_step_seconds_total",
                            "model",
                        ),
                    ),
                    unit="percentunit",
                ),
                Panel(
                    "Rows by kind",
                    "Rows of prompts, of candidates that are probed, of tokens that are kept, per second.",
                    (per_second("ttmark_engine_rows_total", "kind"),),
                    stacked=True,
                ),
                Panel(
                    "Rows of a step",
                    "How large the forward passes are.",
                    buckets("ttmark_engine_step_rows"),
                    kind="heatmap",
                ),
                Panel(
                    "Rows for each generated token",
                    "What a token costs; the watermark's price is the share of probes.",
                    (ratio("ttmark_engine_rows_total", 'ttmark_gen_tokens_total{kind="completion"}'),),
                ),
            ),
        ),
        Row(
            "Candidates",
            (
                Panel(
                    "Candidates of a block",
                    "First tokens (m) that are probed.",
                    quantiles("ttmark_engine_candidates", 0.5, 0.9, 0.99),
                ),
                Panel(
                    "Mean candidates",
                    "Low values come from strict sampling or low entropy.",
                    (mean("ttmark_engine_candidates", "model"),),
                ),
                Panel(
                    "Branch budget",
                    "Candidates of a level that may be probed together.",
                    (Query("min by (model) (ttmark_engine_branch_budget)", "{{model}}"),),
                ),
            ),
        ),
    ),
)
