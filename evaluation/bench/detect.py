"""`bench detect`: detection of many texts beside the bare tokenizer and transformers' SynthID detector."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from transformers import SynthIDTextWatermarkLogitsProcessor

from ttmark.evaluation.report.result import Table
from ttmark.evaluation.text_files import read_human_texts
from ttmark.shared.tokenization import TextTokenizer

Detector = Callable[[Sequence[str]], object]
"""Takes texts and judges all of them."""

OurDetectors = Callable[[TextTokenizer, str, int], Mapping[str, Detector]]
"""Our detection modes by name, for a tokenizer, a scheme and a block size."""

BATCH = 128
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One system.

    Attributes:
        per_cpu_second: units of work in a second of processor time, the best of several runs.
        share: of the first system's speed.
    """

    name: str
    per_cpu_second: float
    share: float


def measure_detectors(
    tokenizer: TextTokenizer, ours: Mapping[str, Detector], human: Path, documents: int, tokens: int
) -> list[Timing]:
    """Tokens per second of processor time; all systems start from the same texts.

    Raises:
        ValueError: the file has too little text.
    """
    texts = cut_texts(tokenizer, read_human_texts(human), documents, tokens)
    detectors: dict[str, Detector] = {
        "the bare tokenizer": partial(_tokenize, tokenizer),
        **ours,
        "transformers SynthID": synthid_detector(tokenizer),
    }
    systems = {name: partial(detect, texts) for name, detect in detectors.items()}
    return time_in_turns(systems, sum(len(tokenizer.encode(text)) for text in texts), REPEATS)


def cut_texts(tokenizer: TextTokenizer, human: Sequence[str], documents: int, tokens: int) -> list[str]:
    """Pieces of texts by people that are `tokens` long.

    Raises:
        ValueError: there is too little text.
    """
    pieces: list[str] = []
    for text in human:
        offsets = tokenizer.encode_with_offsets(text).offsets
        for start in range(0, len(offsets) - tokens, tokens):
            pieces.append(text[offsets[start][0] : offsets[start + tokens - 1][1]])
            if len(pieces) == documents:
                return pieces
    raise ValueError(f"text for {len(pieces)} documents of {tokens} tokens, not {documents}")


def synthid_detector(tokenizer: TextTokenizer) -> Detector:
    """transformers' way from texts to mean scores, of depth 30 as ours; batches are cut to their shortest."""
    processor = SynthIDTextWatermarkLogitsProcessor(
        ngram_len=5,
        keys=list(range(1, 31)),
        sampling_table_size=2**16,
        sampling_table_seed=0,
        context_history_size=1024,
        device=torch.device("cpu"),
    )

    def scores(texts: Sequence[str]) -> torch.Tensor:
        batch = _tokenize(tokenizer, texts)
        length = min(len(ids) for ids in batch)
        ids = torch.tensor([row[:length] for row in batch])  # [texts, tokens]
        values = processor.compute_g_values(ids)  # [texts, tokens - 4, depth]
        mask = processor.compute_context_repetition_mask(ids)  # [texts, tokens - 4]
        means: torch.Tensor = (values.float().mean(-1) * mask).sum(-1) / mask.sum(-1)
        return means

    return lambda texts: [scores(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]


def _tokenize(tokenizer: TextTokenizer, texts: Sequence[str]) -> list[list[int]]:
    encodings = tokenizer.backend.encode_batch(list(texts), add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def time_in_turns(systems: Mapping[str, Callable[[], object]], units: int, repeats: int) -> list[Timing]:
    """Runs every system `repeats` times, turn by turn, so that whatever slows the machine slows all.

    Args:
        systems: the first is what the others are compared with.
        units: of work that a run does.
    """
    best = dict.fromkeys(systems, float("inf"))
    for _ in range(repeats):
        for name, work in systems.items():
            started = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - started)
    first = next(iter(best.values()))
    return [Timing(name, units / seconds, first / seconds) for name, seconds in best.items()]


def timing_table(title: str, unit: str, timings: list[Timing], notes: tuple[str, ...]) -> Table:
    """Ratios first."""
    columns = ("", f"of {timings[0].name}", f"{unit} per CPU second")
    rows = tuple((item.name, f"{item.share:.2f}", f"{item.per_cpu_second:,.0f}") for item in timings)
    return Table(title, columns, rows, notes)
