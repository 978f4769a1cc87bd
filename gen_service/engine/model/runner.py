"""Runs a transformers model on ragged batches."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.grouping import grouped_matrices, matrix_maker
from ttmark.gen_service.engine.model.llama import FusedLlama
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe, RaggedBatch
from ttmark.gen_service.engine.native import Kernels

REFERENCE_ROWS = 64
_ROWS_COMPARED = 4
_ALL_UP_TO = 16  # larger counts are rounded up to a multiple of four, which costs little and halves the start
_LANES = 32


class RowCounts:
    """Rounds a number of rows up to a safe one; from 64 on to a multiple of 4 and of `multiple`.

    Args:
        safe: counts below 64 that give the bits of a large pass.
        multiple: every count is one of this number.
    """

    def __init__(self, safe: frozenset[int], multiple: int = 1) -> None:
        self._safe = frozenset(rows for rows in safe if rows % multiple == 0)
        self._step = math.lcm(4, multiple)

    @classmethod
    def measure(cls, logits_of: Callable[[int], torch.Tensor], widths: Iterable[int]) -> "RowCounts":
        """Compares the passes with up to 16 rows, and with 20, 24, ... 64.

        Args:
            logits_of: logits [n, vocab] of the first n rows of always the same rows, from a pass of n rows.
            widths: numbers of elements per row on which the model computes exponentials or angles. Rows are
                filled up to whole vector registers, as elements behind the last one are computed differently.
        """
        multiple = math.lcm(*(_LANES // math.gcd(_LANES, width) for width in widths))
        reference = logits_of(REFERENCE_ROWS)

        def is_safe(rows: int) -> bool:
            shared = min(rows, _ROWS_COMPARED)
            logits = logits_of(rows)
            return torch.equal(logits[:shared], reference[:shared]) and torch.equal(
                logits[rows - 1], reference[rows - 1]
            )

        counts = [*range(1, _ALL_UP_TO), *range(_ALL_UP_TO, REFERENCE_ROWS, 4)]
        return cls(frozenset(rows for rows in counts if is_safe(rows)), multiple)

    def pad(self, rows: int) -> int:
        """The smallest safe number of rows that is at least `rows`."""
        padded = next((count for count in range(rows, REFERENCE_ROWS) if count in self._safe), None)
        return padded or max(REFERENCE_ROWS, rows + -rows % self._step)


ANY_COUNT = RowCounts(frozenset(range(1, 64)))


class Runner:
    """A model, its KV cache and the padding that makes its arithmetic independent of the batch.

    Args:
        reproducible: rows have the same bits in any batch; else nothing is padded, and what was probed is
            kept for the commit. On a GPU it changes nothing.
        weights: how the matrices lie, of the models that `FusedLlama` computes; see `Acceleration`.
        kernels: attend for commits and probes, and compute what is small in a pass of such a model; None:
            torch's own operators do.
        fused: the matrices of another runner of the model; None: they are made.
    """

    def __init__(
        self,
        model: Any,
        cache: KvCache,
        row_counts: RowCounts = ANY_COUNT,
        *,
        reproducible: bool = True,
        weights: str = "plain",
        kernels: Kernels | None = None,
        fused: FusedLlama | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        self.row_counts = row_counts
        self._text_config = model.config.get_text_config()
        self.device: torch.device = next(model.parameters()).device
        self.reproducible = reproducible or self.device.type != "cpu"
        self.kernels = kernels
        self.fused = fused
        if fused is None and FusedLlama.suits(model):
            self.fused = FusedLlama(model, matrix=matrix_maker(weights), kernels=kernels)
        self.weights = weights if self.fused is not None else "plain"
        for matrix in grouped_matrices(model, self.fused):
            matrix.alike = reproducible

    @torch.inference_mode()
    def forward(self, pieces: Sequence[Append | Probe]) -> list[torch.Tensor]:
        """Computes all pieces in one pass.

        Returns the logits [n, vocab] of each piece: of every branch of a probe, of the last token or of
        every token of an append that wants them, of nothing otherwise.
        """
        batch = RaggedBatch.lay_out(pieces, self.row_counts.pad)
        keep, counts = batch.keep(len(pieces))
        padded = np.zeros(self.row_counts.pad(max(len(keep), 1)), dtype=np.int64)
        padded[: len(keep)] = keep
        logits = self._logits(batch, self._tensor(padded))
        return list(torch.split(logits[: len(keep)], counts))

    @torch.inference_mode()
    def move(self, source: int, target: int, length: int) -> None:
        """Copies cache rows, for an extent that had to grow elsewhere."""
        self.cache.move(source, target, length)

    def probe_once(self, rows: int) -> torch.Tensor:
        """A pass over `rows` branches without a prefix, for measurements: logits [rows, vocab]."""
        tokens = np.arange(rows, dtype=np.int64)[:, None] % self._text_config.vocab_size
        pieces = [Probe(base=0, position=0, paths=part) for part in np.array_split(tokens, -(-rows // 64))]
        return torch.cat(self.forward(pieces))

    def measure_row_counts(self) -> None:
        """Finds out which row counts are safe for this model on this machine; any is, if none has to be."""
        if not self.reproducible:
            return
        text = self._text_config
        head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
        self.row_counts = ANY_COUNT
        self.row_counts = RowCounts.measure(self.probe_once, (head_dim, inner))

    def _logits(self, batch: RaggedBatch, keep: torch.Tensor) -> torch.Tensor:
        """Logits [len(keep), vocab] of the rows `keep` of a batch."""
        plan = batch.attention_plan(
            self.cache, self.device, kernels=self.kernels, keep_probed=not self.reproducible
        )
        tokens, positions = self._tensor(batch.tokens), self._tensor(batch.positions)
        logits: torch.Tensor
        if self.fused is not None:
            logits = self.fused(tokens, positions, keep, plan)
        else:
            logits = self.model(
                input_ids=tokens[None],
                position_ids=positions[None],
                use_cache=False,
                logits_to_keep=keep,
                attention_plan=plan,
            ).logits[0]
        if plan.kept is not None:
            batch.leave_branches(plan.kept)
        return logits

    def _tensor(self, values: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(values).to(self.device)
