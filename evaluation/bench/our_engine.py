"""Our engine under a benchmark's workload."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry

from ttmark.evaluation.bench.workload import Measurement, Stopwatch, Workload
from ttmark.gen_service.engine import Delta, GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.engine.engine_metrics import STEP_PARTS, EngineMetrics
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark, detect_direct

_SCHEME = "synthid"
_KEY = bytes(range(16))


class AnyEngine(Protocol):
    """What both engines have."""

    tokenizer: TextTokenizer

    def record_in(self, metrics: EngineMetrics) -> None: ...
    def start(self) -> None: ...
    def stop(self, drain_seconds: float) -> None: ...
    def generate(self, request: GenerationRequest) -> AsyncIterator[Delta]: ...


class OurEngine:
    """An engine on a model, started once for all its measurements."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self._registry = CollectorRegistry()
        self._engine.record_in(EngineMetrics(self._registry))
        self._engine.start()

    def close(self) -> None:
        self._engine.stop(0.0)

    def measure(
        self,
        workload: Workload,
        block_size: int,
        *,
        max_branches: int | None = None,
    ) -> Measurement:
        """Throughput with blocks of `block_size` tokens, or without a watermark for 0."""
        before = self._seen()
        watch = Stopwatch()
        made = asyncio.run(self._generate(workload, block_size, max_branches))
        completions = [ids for ids, _ in made]
        rates = watch.rates(sum(map(len, completions)))
        spent = self._seen()
        spent.subtract(before)
        steps = sum(spent[part] for part in STEP_PARTS)
        details = {
            "rows_per_step": spent["rows"] / max(spent["steps"], 1),
            "mean_candidates": spent["candidates"] / max(spent["probed"], 1),
            "share_outside_forward": 1 - spent["forward"] / steps,
            "share_of_filters": spent["filters"] / steps,
            "share_of_reweighting": spent["reweight"] / steps,
        }
        if between := [seconds for _, seconds in made if seconds is not None]:
            details["seconds_per_token"] = sum(between) / len(between)
        if block_size:
            watermark = Watermark(_SCHEME, block_size)
            details["mean_z"] = sum(detect_direct(watermark, _KEY, ids).z for ids in completions) / len(
                completions
            )
        name = f"ours, r = {block_size}" if block_size else "ours, no watermark"
        if max_branches:
            name += f", b = {max_branches}"
        return Measurement(name, workload, rates, details)

    async def _generate(
        self,
        workload: Workload,
        block_size: int,
        max_branches: int | None,
    ) -> list[tuple[list[int], float | None]]:
        """Tokens of each completion, and seconds for each token after its first piece, if there are some."""
        prompts = workload.prompts(self._engine.tokenizer)
        marking = Marking("bench", 1, "bench", Watermark(_SCHEME, block_size), _KEY) if block_size else None

        async def one(index: int, prompt: list[int]) -> tuple[list[int], float | None]:
            filters = workload.filters
            sampling = SamplingParams(
                max_tokens=workload.tokens,
                temperature=filters["temperature"],
                top_k=int(filters["top_k"]),
                top_p=filters["top_p"],
                seed=index,
                ignore_eos=True,
                max_branches=max_branches,
            )
            request = GenerationRequest(str(index), tuple(prompt), sampling, marking)
            tokens: list[int] = []
            begun, first = 0.0, 0
            async for delta in self._engine.generate(request):
                if not tokens:
                    begun, first = time.perf_counter(), len(delta.token_ids)
                tokens += delta.token_ids
            later = len(tokens) - first
            return tokens, (time.perf_counter() - begun) / later if later else None

        return await asyncio.gather(*(one(index, prompt) for index, prompt in enumerate(prompts)))

    def _seen(self) -> "Counter[str]":
        """Totals since the engine's start."""
        totals: Counter[str] = Counter()
        for name, labels, value in self._samples():
            if name == "ttmark_engine_step_seconds_total":
                totals[labels["part"]] = value  # type: ignore[assignment]
            elif name in _TOTALS:
                totals[_TOTALS[name]] = value  # type: ignore[assignment]
        return totals

    def _samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for family in self._registry.collect():
            for sample in family.samples:
                yield sample.name, sample.labels, sample.value


_TOTALS = {
    "ttmark_engine_step_rows_sum": "rows",
    "ttmark_engine_step_rows_count": "steps",
    "ttmark_engine_candidates_sum": "candidates",
    "ttmark_engine_candidates_count": "probed",
}
