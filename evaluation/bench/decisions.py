"""`bench decisions`: from the logits of a pass to tokens, without a model."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median
from typing import Annotated, ClassVar

import torch
import typer

from ttmark.evaluation.bench.figures import show
from ttmark.evaluation.bench.random_model import byte_tokenizer
from ttmark.evaluation.bench.workload import CHAT
from ttmark.evaluation.options import Json
from ttmark.evaluation.report.result import Table, table_by
from ttmark.gen_service.decoding.block import TandemBlock
from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark

_KEY = bytes(range(16))
_BRANCHES = 8
_BANK = 64  # rows of random logits, drawn from again and again
_STEEPNESS, _NOISE = 1.8, 0.5  # by the logarithm of the rank: chat sampling keeps some three tokens
_MOST_TOKENS = 1 << 20
_WARM_UP = 4


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions on pairs of one number of sequences, all of which are at the same level.

    Attributes:
        first: processor seconds until the candidates of the first token are known, the median.
        pair: until a pair is drawn, of which the candidates were probed.
        rows: of the logits for `pair`, the mean.
    """

    vocabulary: int
    sequences: int
    first: float
    pair: float
    rows: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """What the engine does between two passes: filters, joint distributions, watermark, draws, text."""

    name: ClassVar[str] = "decisions"

    sequences: Annotated[str, typer.Option(help="Numbers of sequences, with commas.")] = "1,8,32,64"
    vocabularies: Annotated[str, typer.Option(help="Sizes, with commas.")] = "49152,151936"
    repeats: Annotated[int, typer.Option(min=1, help="Pairs of each sequence.")] = 20
    dtype: Annotated[str, typer.Option(help="Of the logits: float32 or bfloat16.")] = "bfloat16"
    scheme: str = "synthid"
    json: Json = None

    def run(self) -> None:
        torch.set_num_threads(1)
        measured = list(self._measured())
        names = [f"{each.vocabulary} tokens, {each.sequences} sequences" for each in measured]
        show([_table(measured)], measured, self.json, names)

    def _measured(self) -> Iterator[Decisions]:
        for vocabulary in map(int, self.vocabularies.split(",")):
            bank = _random_logits(vocabulary, getattr(torch, self.dtype))
            for count in map(int, self.sequences.split(",")):
                yield _measure(bank, _sequences(count, Watermark(self.scheme, 2)), self.repeats)


def _measure(bank: torch.Tensor, sequences: list[Sequence], repeats: int) -> Decisions:
    decoder = Decoder(lambda: _BRANCHES)
    generator = torch.Generator().manual_seed(1)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    rows: list[int] = []
    while len(seconds[True]) < repeats + _WARM_UP:
        probed = any(isinstance(each.block, TandemBlock) for each in sequences)
        counts = [_paths(sequence) for sequence in sequences]
        drawn = bank[torch.randint(len(bank), (sum(counts),), generator=generator)]
        logits = dict(zip(sequences, torch.split(drawn, counts), strict=True))
        started = time.process_time()
        decoder.decide(logits)
        seconds[probed].append(time.process_time() - started)
        if probed:
            rows.append(sum(counts))
    first, pair = (median(seconds[probed][-repeats:]) for probed in (False, True))
    return Decisions(bank.shape[1], len(sequences), first, pair, fmean(rows[-repeats:]))


def _paths(sequence: Sequence) -> int:
    """Rows of logits that the sequence waits for."""
    return len(sequence.block.paths) if sequence.block is not None else 1


def _sequences(count: int, watermark: Watermark) -> list[Sequence]:
    tokenizer = TextTokenizer(byte_tokenizer())
    marking = Marking("bench", 1, "bench", watermark, _KEY)
    sampling = [
        SamplingParams(
            max_tokens=_MOST_TOKENS,
            temperature=CHAT["temperature"],
            top_k=int(CHAT["top_k"]),
            top_p=CHAT["top_p"],
            seed=seed,
            ignore_eos=True,
        )
        for seed in range(count)
    ]
    requests = [GenerationRequest(str(each.seed), (1,), each, marking) for each in sampling]
    return [Sequence(request, tokenizer, ()) for request in requests]


def _random_logits(vocabulary: int, dtype: torch.dtype) -> torch.Tensor:
    """Rows [_BANK, vocabulary] that fall like a language model's, each in an order of its own."""
    generator = torch.Generator().manual_seed(0)
    falling = -_STEEPNESS * torch.log(torch.arange(1, vocabulary + 1))
    rows = [falling + _NOISE * torch.randn(vocabulary, generator=generator) for _ in range(_BANK)]
    return torch.stack([row[torch.randperm(vocabulary, generator=generator)] for row in rows]).to(dtype)


def _table(measured: list[Decisions]) -> Table:
    columns = {
        "vocabulary": lambda item: str(item.vocabulary),
        "sequences": lambda item: str(item.sequences),
        "first token, ms": lambda item: f"{1e3 * item.first:.2f}",
        "pair, ms": lambda item: f"{1e3 * item.pair:.2f}",
        "rows of a pair": lambda item: f"{item.rows:.1f}",
    }
    notes = ("Medians of processor time on one thread; chat sampling, at most 8 branches, random logits.",)
    return table_by("A decision", measured, columns, notes)
