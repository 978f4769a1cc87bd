"""Our engine under a benchmark's workload."""

import asyncio
import time
from statistics import mean

from ttmark.evaluation.bench.workload import Measurement, Stopwatch, Workload
from ttmark.gen_service.api.features import RunningEngine
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.shared.observability.memory import process_memory
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.watermark import Watermark

_SCHEME = "synthid"
_KEY = bytes(range(16))


class OurEngine:
    """An engine on a model, started once for all its measurements."""

    def __init__(self, engine: RunningEngine, label: str = "") -> None:
        self._engine, self._label = engine, label
        self._engine.start()

    def close(self) -> None:
        self._engine.stop(0.0)

    def prompts(self, workload: Workload) -> list[list[int]]:
        return workload.prompts(self._engine.tokenizer)

    def measure(self, workload: Workload, block_size: int, *, max_branches: int | None = None) -> Measurement:
        """Throughput with blocks of `block_size` tokens, or without a watermark for 0."""
        watch = Stopwatch()
        made = asyncio.run(self._generate(workload, block_size, max_branches))
        completions = [ids for ids, *_ in made]
        rates = watch.rates(sum(map(len, completions)))
        details = {"first_token_ms": 1e3 * mean(seconds for _, seconds, _ in made)}
        if between := [seconds for *_, seconds in made if seconds is not None]:
            details["seconds_per_token"] = mean(between)
        if block_size:
            watermark = Watermark(_SCHEME, block_size)
            details["mean_z"] = mean(detect_direct(watermark, _KEY, ids).z for ids in completions)
        details |= {f"{name}_mib": bytes_ / 2**20 for name, bytes_ in process_memory().items()}
        name = f"ours, r = {block_size}" if block_size else "ours, no watermark"
        if max_branches:
            name += f", b = {max_branches}"
        return Measurement(name + self._label, workload, rates, details)

    async def _generate(
        self, workload: Workload, block_size: int, max_branches: int | None
    ) -> list[tuple[list[int], float, float | None]]:
        """Tokens of each completion, seconds to its first piece, and for each later token, if any."""
        prompts = self.prompts(workload)
        marking = Marking("bench", 1, "bench", Watermark(_SCHEME, block_size), _KEY) if block_size else None

        async def one(index: int, prompt: list[int]) -> tuple[list[int], float, float | None]:
            sampling = SamplingParams(
                max_tokens=workload.tokens,
                temperature=workload.filters.temperature,
                top_k=workload.filters.top_k,
                top_p=workload.filters.top_p,
                seed=index,
                ignore_eos=True,
                max_branches=max_branches,
            )
            request = GenerationRequest(str(index), tuple(prompt), sampling, marking)
            tokens: list[int] = []
            asked, begun, first = time.perf_counter(), 0.0, 0
            async for delta in self._engine.generate(request):
                if not tokens:
                    begun, first = time.perf_counter(), len(delta.token_ids)
                tokens += delta.token_ids
            later = len(tokens) - first
            return tokens, begun - asked, (time.perf_counter() - begun) / later if later else None

        return await asyncio.gather(*(one(index, prompt) for index, prompt in enumerate(prompts)))
