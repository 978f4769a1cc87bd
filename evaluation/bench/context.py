"""`bench context`: time per token and of the prompt by the length of the context, and of a second turn."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
import typer
from transformers import AutoModelForCausalLM

from ttmark.evaluation.bench.figures import show
from ttmark.evaluation.bench.generation import EngineOptions
from ttmark.evaluation.bench.workload import CHAT, Workload
from ttmark.evaluation.options import Json
from ttmark.evaluation.report.result import table_by
from ttmark.gen_service.engine import Engine, EngineSettings, GenerationRequest, Marking, SamplingParams
from ttmark.shared.watermark import Watermark

_KEY = bytes(range(16))
_BRANCHES = 8
_TURN = 16  # tokens that a second turn adds to the first


@dataclass(frozen=True, slots=True)
class ContextFigures:
    """One length of context; seconds are of processor time.

    Attributes:
        plain, pairs: per token, after so many tokens.
        prompt: of the whole prompt, ours.
        transformers: of the same prompt in one call of transformers' model.
        second_turn: of a prompt that goes on from this one and its answer, as a share of `prompt`.
    """

    tokens: int
    plain: float
    pairs: float
    prompt: float
    transformers: float
    second_turn: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(EngineOptions):
    """Time per token and of the prompt against the length of the context, beside transformers."""

    name: ClassVar[str] = "context"

    lengths: Annotated[str, typer.Option(help="Prompt tokens, with commas.")] = "128,1000,4096,7900"
    tokens: Annotated[int, typer.Option(min=4, help="Tokens of each completion.")] = 24
    json: Json = None

    def run(self) -> None:
        rows = list(self._measured())
        least = rows[0]
        table = table_by(
            "One sequence",
            rows,
            {
                "tokens before": lambda row: str(row.tokens),
                "no watermark, ms a token": lambda row: f"{1e3 * row.plain:.1f}",
                "of the shortest": lambda row: f"{row.plain / least.plain:.2f}",
                f"pairs, b = {_BRANCHES}, ms a token": lambda row: f"{1e3 * row.pairs:.1f}",
                "of the shortest ": lambda row: f"{row.pairs / least.pairs:.2f}",
                "prompt, tokens/s": lambda row: f"{row.tokens / row.prompt:.0f}",
                "of transformers'": lambda row: f"{row.transformers / row.prompt:.2f}",
                "second turn": lambda row: f"{row.second_turn:.3f}",
            },
            (f"Processor time. Chat sampling, passes not reproducible. A second turn adds {_TURN} tokens.",),
        )
        show([table], rows, self.json, [f"{row.tokens} tokens before" for row in rows])

    def _measured(self) -> Iterator[ContextFigures]:
        lengths = [int(length) for length in self.lengths.split(",")]
        with self.folder() as folder:
            settings = EngineSettings(
                dtype=self.dtype,
                threads=self.threads,
                max_sequences=1,
                kv_tokens=2 * (max(lengths) + 4 * self.tokens + _TURN),
                max_branches=_BRANCHES,
                reproducible=False,
            )
            engine = Engine.load(folder, settings)
            peer: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=self.dtype).eval()
            engine.start()
            try:
                for length in lengths:
                    yield self._figures(engine, peer, length)
                    typer.echo(f"measured {length} tokens before", err=True)
            finally:
                engine.stop(0.0)

    def _figures(self, engine: Engine, peer: Any, length: int) -> ContextFigures:
        (prompt,) = Workload(1, self.tokens, length).prompts(engine.tokenizer)
        marking = Marking("bench", 1, "bench", Watermark("synthid", 2), _KEY)
        first, plain, answer = self._timed(engine, prompt, None, "one")
        second, _, _ = self._timed(engine, [*prompt, *answer, *prompt[:_TURN]], None, "one")
        _, pairs, _ = self._timed(engine, prompt, marking, "another")
        started = time.process_time()
        with torch.inference_mode():
            peer(torch.tensor([prompt]), use_cache=True, logits_to_keep=1)
        elapsed = time.process_time() - started
        return ContextFigures(length, plain, pairs, first, elapsed, second / first)

    def _timed(
        self, engine: Engine, prompt: Sequence[int], marking: Marking | None, tenant: str
    ) -> tuple[float, float, list[int]]:
        """Seconds until the first token, seconds per token after it, and the tokens."""
        sampling = SamplingParams(
            max_tokens=self.tokens,
            temperature=CHAT["temperature"],
            top_k=int(CHAT["top_k"]),
            top_p=CHAT["top_p"],
            ignore_eos=True,
        )
        name = f"{tenant} {len(prompt)}"
        request = GenerationRequest(name, tuple(prompt), sampling, marking, tenant=tenant)

        async def run() -> tuple[list[float], list[int]]:
            clock = [time.process_time()]
            tokens: list[int] = []
            async for delta in engine.generate(request):
                clock += [time.process_time()] * len(delta.token_ids)
                tokens += delta.token_ids
            return clock, tokens

        clock, tokens = asyncio.run(run())
        return clock[1] - clock[0], (clock[-1] - clock[1]) / (len(clock) - 2), tokens
