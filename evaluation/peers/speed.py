"""Processor time of every system on one workload, in one process.

Prompts are computed anew for each: transformers keeps none, and our engine's prefix cache is off.
"""

from collections.abc import Sequence
from dataclasses import replace

from ttmark.evaluation.bench.peers import Transformers
from ttmark.evaluation.bench.workload import Stopwatch, Workload
from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.run import Completion, TextSource
from ttmark.evaluation.sources import EngineSource

TEXTS = 8
WARM_UP, WHOLE = 4, 8
"""Tokens: before the time is taken; of the processor that works on the whole vocabulary, for it is slow."""


def seconds_per_thousand(source: TextSource, cell: Cell, seed: int) -> float:
    """Processor seconds of 1,000 tokens, `TEXTS` texts at a time."""
    made: list[Completion] = []
    indices: Sequence[int] = range(TEXTS)
    source.generate(replace(cell, tokens=WARM_UP), indices, seed, made.append)
    watch = Stopwatch()
    source.generate(cell, indices, seed, made.append)
    return 1000 / watch.rates(TEXTS * cell.tokens).per_cpu_second


def without_prefix_cache(source: EngineSource) -> EngineSource:
    """A further engine on the same model and prompts."""
    settings = replace(source.settings, prefix_cache=False, max_sequences=TEXTS)
    return EngineSource(source.model, source.prompts_path, settings)


def shipped_synthid(source: EngineSource, setting: SamplingSetting) -> float:
    """The same of SynthID-Text as transformers ships it, with `generate`'s own option."""
    filters = {"top_k": setting.top_k, "top_p": setting.top_p, "temperature": setting.temperature}
    peer = Transformers(source.model, source.settings.dtype)
    measured = peer.generate(Workload(TEXTS, WHOLE, filters=filters), synthid=True)
    return 1000 / measured.rates.per_cpu_second if measured.rates else float("nan")
