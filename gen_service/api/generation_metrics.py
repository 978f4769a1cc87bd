"""Prometheus metrics of the generation service's API."""

from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram

_FIRST_TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PER_TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_TOTAL_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
OUTCOMES = frozenset({"stop", "length", "cancelled", "failed", "rejected"})
REASONS = frozenset({"warm_up", "repeated_context", "greedy", "odd_end", "disabled", "too_short", "confined"})
_OTHER = "other"


class GenerationMetrics:
    """Completions by outcome, tokens, latencies as a client sees them, and what became of the watermark."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._completions = counter("ttmark_gen_completions", "Completions by how they ended.", ["outcome"])
        self._rejections = counter(
            "ttmark_gen_rejections", "Completions that the engine refused or failed.", ["reason"]
        )
        self._tokens = counter("ttmark_gen_tokens", "Tokens read and generated.", ["kind"])
        self._first_token = histogram(
            "ttmark_gen_time_to_first_token_seconds",
            "Time from a completion's submission to its first token.",
            buckets=_FIRST_TOKEN_BUCKETS,
        )
        self._per_token = histogram(
            "ttmark_gen_time_per_output_token_seconds",
            "Mean time per token after the first, of finished completions.",
            buckets=_PER_TOKEN_BUCKETS,
        )
        self._duration = histogram(
            "ttmark_gen_completion_duration_seconds",
            "Time from a completion's submission to its end.",
            buckets=_TOTAL_BUCKETS,
        )
        self._watermarks = counter("ttmark_gen_watermarks", "Responses by watermark status.", ["status"])
        self._blocks = counter(
            "ttmark_gen_blocks", "Blocks of tokens by what became of their watermark.", ["outcome"]
        )

        for outcome in sorted(OUTCOMES):
            self._completions.labels(outcome)
        for outcome in ("watermarked", *sorted(REASONS)):
            self._blocks.labels(outcome)
        for status in ("watermarked", "partial", "unwatermarked"):
            self._watermarks.labels(status)
        self._rejections.labels("rate_limit_exceeded")

    def completion_ended(self, outcome: str, seconds: float) -> None:
        """One completion ended after `seconds`."""
        self._completions.labels(outcome if outcome in OUTCOMES else _OTHER).inc()
        self._duration.observe(seconds)

    def rejected(self, reason: str) -> None:
        """A request was refused; `reason` is the code of the error."""
        self._rejections.labels(reason).inc()

    def first_token(self, seconds: float) -> None:
        """A completion's first token came after `seconds`."""
        self._first_token.observe(seconds)

    def later_tokens(self, tokens: int, seconds: float) -> None:
        """A completion's `tokens` after the first took `seconds` together."""
        if tokens > 0:
            self._per_token.observe(seconds / tokens)

    def tokens(self, *, prompt: int = 0, completion: int = 0) -> None:
        """Counts tokens read and generated."""
        self._tokens.labels("prompt").inc(prompt)
        self._tokens.labels("completion").inc(completion)

    def watermark(self, status: str, watermarked_blocks: int, reasons: Mapping[str, int]) -> None:
        """Records the watermark block of one response."""
        self._watermarks.labels(status).inc()
        self._blocks.labels("watermarked").inc(watermarked_blocks)
        for reason, blocks in reasons.items():
            self._blocks.labels(reason if reason in REASONS else _OTHER).inc(blocks)
