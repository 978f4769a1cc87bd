"""From logits to tokens: starts blocks, grows them, and has the finished ones drawn."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from typing import TypeVar

import torch

from ttmark.gen_service.decoding.block import Block, PlainBlock, TandemBlock
from ttmark.gen_service.decoding.errors import SequenceFailed, each_or_failed
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.request import Delta
from ttmark.gen_service.decoding.reweighting import Reweighter
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.gen_service.decoding.support import Support

S = TypeVar("S", bound=Sequence)

Supports = list[Support | None]
"""Of each path of a block; None: its logits are not finite."""


class Decoder:
    """Turns the logits of a pass into new tokens, each sequence on its own account.

    An error that one sequence causes becomes that sequence's outcome and nobody else's.
    """

    def __init__(self, branch_limit: Callable[[], int]) -> None:
        self._branch_limit = branch_limit
        self._reweighter = Reweighter()

    @property
    def reweight_seconds(self) -> float:
        """Seconds spent on joint distributions, the PRF and the reweighting since the start."""
        return self._reweighter.seconds

    @property
    def branch_budget(self) -> int:
        """Branches of a block level that may be probed together now."""
        return self._branch_limit()

    @torch.inference_mode()
    def decide(self, logits: Mapping[S, torch.Tensor]) -> dict[S, Delta | SequenceFailed]:
        """New tokens, or the failure, of every sequence that has any; the others wait for their probes.

        Args:
            logits: [paths, vocab] of each sequence: of its next token, or of its block's branches.
        """
        outcomes: dict[S, Delta | SequenceFailed] = {}
        opened: dict[S, Block] = {}
        for sequence, rows in logits.items():
            try:
                block = sequence.open_block(self.branch_budget)
                sequence.adjust(block, rows)
                opened[sequence] = block
            except Exception as error:
                outcomes[sequence] = SequenceFailed.because(error)
        parts = [(logits[sequence], sequence) for sequence in opened]
        supports = each_or_failed(_filter_together, parts) if parts else []
        complete: dict[TandemBlock, S] = {}
        for (sequence, block), of_block in zip(opened.items(), supports, strict=True):
            try:
                healthy = _healthy(of_block)
                if isinstance(block, PlainBlock):
                    outcomes[sequence] = sequence.append(block, (sequence.sample(healthy[0]),))
                else:
                    block.builder.grow(healthy)
                    if block.builder.complete:
                        complete[block] = sequence
            except Exception as error:
                outcomes[sequence] = SequenceFailed.because(error)
        for block, tokens in self._reweighter.draw(complete).items():
            outcomes[complete[block]] = _append_block(complete[block], block, tokens)
        return outcomes


def _append_block(
    sequence: Sequence, block: TandemBlock, tokens: tuple[int, ...] | SequenceFailed
) -> Delta | SequenceFailed:
    if isinstance(tokens, SequenceFailed):
        return tokens
    try:
        return sequence.append(block, tokens)
    except Exception as error:
        return SequenceFailed.because(error)


def _healthy(supports: Supports | SequenceFailed) -> list[Support]:
    if isinstance(supports, SequenceFailed):
        raise supports
    healthy = [support for support in supports if support is not None]
    if len(healthy) < len(supports):
        raise SequenceFailed("the model gave logits that are not finite")
    return healthy


def _filter_together(parts: Items[tuple[torch.Tensor, Sequence]]) -> list[Supports]:
    """Supports of the rows of each sequence."""
    logits = _joined([rows for rows, _ in parts])
    params = [sequence.filters for rows, sequence in parts for _ in range(len(rows))]
    flat = iter(filter_rows(logits, params))
    return [[next(flat) for _ in range(len(rows))] for rows, _ in parts]


def _joined(parts: Items[torch.Tensor]) -> torch.Tensor:
    """Rows one after the other; no copy where they lie so already, as those of one pass do."""
    first, rows = parts[0], sum(map(len, parts))
    start, width = first.data_ptr(), first.stride(0) * first.element_size()
    for part in parts:
        if part.data_ptr() != start or part.stride() != first.stride():
            return torch.cat(list(parts))
        start += len(part) * width
    if first.untyped_storage().data_ptr() != parts[-1].untyped_storage().data_ptr():
        return torch.cat(list(parts))
    return first.as_strided((rows, first.shape[1]), first.stride())
