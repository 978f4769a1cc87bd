"""`bench vllm`: our engine inside vLLM beside vLLM without a watermark, in one run of vLLM's environment."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ttmark.evaluation.bench.generation import Model, Tokens
from ttmark.evaluation.bench.in_vllm_table import UNFILTERED, UNMARKED_IN_VLLM, ratios
from ttmark.evaluation.bench.our_engine import OurEngine
from ttmark.evaluation.bench.output import show
from ttmark.evaluation.bench.transformers_peer import Transformers
from ttmark.evaluation.bench.vllm_process import CONTEXT, MEMORY_SHARE, VllmPeer
from ttmark.evaluation.bench.workload import CHAT, PAPER, Measurement, Workload, setting
from ttmark.evaluation.options import Json, model_path

_FILTERS = {"chat": CHAT, "paper": PAPER}
_PATIENCE_SECONDS = 900.0
_SYNTHID_TOKENS = 16  # it is slow
_OWN_WATERMARK = {"watermark_config": {"key": 1}}


@dataclass(frozen=True, slots=True, kw_only=True)
class InVllm:
    """Pairs inside vLLM beside vLLM; run it where vLLM is installed, with OMP_NUM_THREADS (docs/vllm.md)."""

    name: ClassVar[str] = "vllm"

    model: Model = "smollm2"
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16, for all.")] = "bfloat16"
    sequences: Annotated[str, typer.Option(help="Numbers of sequences, with commas.")] = "1,8,32"
    block_sizes: Annotated[str, typer.Option(help="Block sizes, with commas; 0 is no watermark.")] = "0,2"
    filters: Annotated[str, typer.Option(help="chat, paper (temperature 1), or both with a comma.")] = (
        "chat,paper"
    )
    prompts: Annotated[str, typer.Option(help="Tokens of each prompt, with commas.")] = "32"
    tokens: Tokens = 64
    rounds: Annotated[int, typer.Option(min=1, help="Turns of all systems; medians are shown.")] = 3
    beside: Annotated[
        bool,
        typer.Option(
            help="vLLM, with filters and without; its own watermark, where it runs; transformers' SynthID."
        ),
    ] = True
    json: Json = None

    def run(self) -> None:
        seen = []
        for item in self._measured():
            rate = f"{item.rates.per_second:.1f} tokens/s" if item.rates else item.error
            typer.echo(f"{item.workload.sequences} x {setting(item)} {item.system}: {rate}", err=True)
            seen.append(item)
        show([ratios(seen)], seen, self.json)

    def _measured(self) -> Iterator[Measurement]:
        from ttmark.gen_service.vllm_engine.engine import VllmEngine
        from ttmark.gen_service.vllm_engine.settings import VllmSettings

        counts, sizes, lengths = (
            [int(each) for each in chosen.split(",")]
            for chosen in (self.sequences, self.block_sizes, self.prompts)
        )
        workloads = [
            Workload(count, self.tokens, length, dict(_FILTERS[name]))
            for count, name, length in product(counts, self.filters.split(","), lengths)
        ]
        folder = model_path(self.model)
        context = {"max_model_len": max(CONTEXT, max(lengths) + self.tokens + 8)}
        peers = _Beside(folder, self.dtype, max(counts), context) if self.beside else None
        settings = VllmSettings(
            dtype=self.dtype,
            max_sequences=max(*counts, 2),
            prefix_cache=False,
            arguments=context | {"gpu_memory_utilization": MEMORY_SHARE},
        )
        ours = OurEngine(VllmEngine.load(folder, settings))
        try:
            if peers is not None:
                yield peers.own_watermark(workloads[0])
            for workload in workloads:
                for size in sizes:
                    ours.measure(replace(workload, tokens=6), size)
                if peers is not None:
                    yield peers.synthid(workload)
                for _ in range(self.rounds):
                    if peers is not None:
                        yield from peers.measure(workload)
                    for size in sizes:
                        yield replace(
                            ours.measure(workload, size),
                            system=f"in vLLM, r = {size}" if size else UNMARKED_IN_VLLM,
                        )
        finally:
            ours.close()
            if peers is not None:
                peers.close()


class _Beside:
    """What is measured beside our engine."""

    def __init__(self, folder: str, dtype: str, sequences: int, arguments: dict[str, Any]) -> None:
        def start(**more: Any) -> VllmPeer:
            python = Path(sys.executable)
            return VllmPeer(python, folder, dtype, None, _PATIENCE_SECONDS, sequences=sequences, **more)

        self._start = start
        self._arguments = arguments
        self._vllm = start(arguments=arguments)
        self._transformers = Transformers(folder, dtype)

    def own_watermark(self, workload: Workload) -> Measurement:
        """vLLM with its own watermark of single tokens, or why it does not run."""
        peer = self._start(arguments=self._arguments | _OWN_WATERMARK, name="vLLM, its Gumbel watermark")
        try:
            return peer.measure(workload)
        finally:
            peer.close()

    def measure(self, workload: Workload) -> Iterator[Measurement]:
        """Without a watermark, by vLLM's sampler; the same without top-k and top-p, for which it sorts."""
        yield self._vllm.measure(workload)
        yield self._vllm.measure(workload, {"temperature": workload.filters["temperature"]}, UNFILTERED)

    def synthid(self, workload: Workload) -> Measurement:
        """Transformers' `generate` with SynthID, a few tokens."""
        return self._transformers.generate(replace(workload, tokens=_SYNTHID_TOKENS), synthid=True)

    def close(self) -> None:
        self._vllm.close()
