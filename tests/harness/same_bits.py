"""`python -m tests.harness.same_bits FOLDER DTYPE KIND [ROWS]`: rows with other bits in another batch.

Each row, of a commit, of a probe or of a chunk of a prompt, is computed in two batches that are drawn anew:
alone, beside a few or beside many. All of them have the same bits where `EngineSettings` promises it: in
float32, and with matrices of 4 and 8 bits in either type.
"""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import torch

from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.settings import EngineSettings

_SEQUENCES, _EXTENT, _MOST_CHUNK, _MOST_ROWS = 24, 192, 64, 256
SPACE = _SEQUENCES * _EXTENT
"""Rows of the cache that `other_bits` needs."""

Piece = Append | Probe
Kind = Literal["none", "int4", "int8"]
KINDS: tuple[Kind, ...] = ("none", "int4", "int8")


def other_bits(runner: Runner, vocab: int, rows: int, seed: int = 0) -> tuple[int, int]:
    """How many of so many rows, each computed in two batches, differ in any bit, and how many there were."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, _EXTENT - _MOST_CHUNK, _SEQUENCES)
    for number, length in enumerate(lengths):
        tokens = generator.integers(0, vocab, length).tolist()
        for start in range(0, length, _MOST_CHUNK):
            part = tokens[start : start + _MOST_CHUNK]
            runner.forward([Append(number * _EXTENT, start, part, is_chunk=True, wants_logits=False)])
    asked, due = [], rows
    while due > 0:
        number = int(generator.integers(_SEQUENCES))
        asked.append(_piece(number * _EXTENT, int(lengths[number]), vocab, generator))
        due -= _rows(asked[-1])
    once, again = (_computed(runner, asked, generator) for _ in range(2))
    # Not by their values: a NaN is none.
    return sum(one != two for one, two in zip(once, again, strict=True)), len(once)


def _piece(base: int, position: int, vocab: int, generator: np.random.Generator) -> Piece:
    kind = generator.integers(8)
    if kind < 4:
        paths = generator.integers(0, vocab, (int(generator.integers(1, 9)), int(generator.integers(1, 3))))
        return Probe(base, position, paths)
    count = int(generator.integers(1, 3) if kind < 7 else generator.integers(3, _MOST_CHUNK))
    tokens = generator.integers(0, vocab, count).tolist()
    return Append(base, position, tokens, is_chunk=kind == 7, wants_logits=True, every_row=True)


def _rows(piece: Piece) -> int:
    return len(piece.tokens) if isinstance(piece, Append) else len(piece.paths)


def _computed(runner: Runner, asked: Sequence[Piece], generator: np.random.Generator) -> list[bytes]:
    """A digest of the bits of each row's logits, piece by piece."""
    digests: dict[int, list[bytes]] = {}
    for batch in _batches(asked, generator):
        for place, logits in zip(batch, runner.forward([asked[each] for each in batch]), strict=True):
            bits = logits.contiguous().view(torch.uint8).numpy()
            digests[place] = [hashlib.blake2b(row.tobytes()).digest() for row in bits]
    return [row for place in range(len(asked)) for row in digests[place]]


def _batches(asked: Sequence[Piece], generator: np.random.Generator) -> Iterator[list[int]]:
    """Every piece once, in batches as large as chance will have it; of a sequence one at most is cached."""
    batch: list[int] = []
    most, rows, written = 1.0, 0, set[int]()
    for place in generator.permutation(len(asked)).tolist():
        piece = asked[place]
        if batch and (rows >= most or (isinstance(piece, Append) and piece.base in written)):
            yield batch
            batch, rows, written = [], 0, set()
            most = _MOST_ROWS ** generator.random()
        batch.append(place)
        rows += _rows(piece)
        if isinstance(piece, Append):
            written.add(piece.base)
    yield batch


def reproducible_runner(folder: str, dtype: str, kind: Kind) -> Runner:
    """As an engine has it that promises the same bits."""
    loaded = load_model(folder, EngineSettings(device="cpu", dtype=dtype, quantization=kind, threads=1))
    runner = loaded.acceleration.runner(loaded.model, KvCache(SPACE), reproducible=True)
    runner.measure_row_counts()
    return runner


def main() -> None:
    folder, dtype, kind, *counts = sys.argv[1:]
    runner = reproducible_runner(folder, dtype, next(each for each in KINDS if each == kind))
    count = int(counts[0]) if counts else 10_000
    differ, rows = other_bits(runner, runner.model.config.vocab_size, count)
    print(f"{dtype}, {kind} ({runner.weights}): {differ} of {rows:,} rows have other bits")


if __name__ == "__main__":
    main()
