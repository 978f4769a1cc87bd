"""From logits to tokens: starts blocks, grows them, and has the finished ones drawn."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import partial
from typing import TypeVar

import numpy as np
import torch

from ttmark.gen_service.decoding.filtered_tokens import Support
from ttmark.gen_service.decoding.filters import BoundedRows, Supports, filter_parts
from ttmark.gen_service.decoding.request import Delta, SequenceFailed, each_or_failed
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.gen_service.decoding.tandem_block import (
    Block,
    BlockBuilder,
    Level,
    PlainBlock,
    Reweighter,
    TandemBlock,
    least_share,
    next_levels,
)

S = TypeVar("S", bound=Sequence)

Filtered = BoundedRows | Supports | SequenceFailed
"""What the filters leave of the rows of a sequence, or why that is not known."""


class Decoder:
    """Turns the logits of a pass into new tokens, each sequence on its own account.

    An error that one sequence causes becomes that sequence's outcome and nobody else's.

    Args:
        branch_budget: branches of a block level that may be probed together.
    """

    def __init__(self, branch_budget: int) -> None:
        self.branch_budget = branch_budget
        self._reweighter = Reweighter()
        self._filter_seconds = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        """Spent since the start on penalties, grammars and filters, and on reweighting and drawing."""
        return {"filters": self._filter_seconds, "reweight": self._reweighter.seconds}

    @torch.inference_mode()
    def decide(self, logits: Mapping[S, torch.Tensor]) -> dict[S, Delta | SequenceFailed]:
        """New tokens, or the failure, of every sequence that has any; the others wait for their probes.

        Args:
            logits: [paths, vocab] of each sequence: of its next token, or of its block's branches.
        """
        outcomes: dict[S, Delta | SequenceFailed] = {}
        blocks: dict[S, Block] = {}
        own: dict[S, torch.Tensor] = {}
        started = time.perf_counter()
        for sequence, rows in logits.items():
            try:
                block = sequence.open_block(self.branch_budget)
                unchanged = sequence.adjust(block, rows)
                if unchanged is not None:
                    own[sequence] = unchanged
                blocks[sequence] = block
            except Exception as error:
                outcomes[sequence] = SequenceFailed.because(error)
        found = _filtered(logits, blocks)
        for sequence, model_rows in own.items():
            _note_share(blocks[sequence], model_rows, logits[sequence], found[sequence])
        self._filter_seconds += time.perf_counter() - started
        tokens, levels = _drawn(found, blocks), _levels(found, blocks)
        complete: dict[TandemBlock, S] = {}
        for sequence, supports in found.items():
            block = blocks[sequence]
            try:
                if sequence in tokens:
                    token, probability = tokens[sequence]
                    outcomes[sequence] = sequence.append(block, (token,), probability)
                elif isinstance(block, PlainBlock):
                    support = _healthy(supports)[0]
                    token = support.draw(sequence.token_uniform())
                    probability = support.probability(token) if block.opening else 1.0
                    outcomes[sequence] = sequence.append(block, (token,), probability)
                else:
                    if sequence in levels:
                        block.builder.extend(*levels[sequence])
                    else:
                        block.builder.grow(_healthy(supports))
                    if block.builder.complete:
                        complete[block] = sequence
            except Exception as error:
                outcomes[sequence] = SequenceFailed.because(error)
        for block, new in self._reweighter.draw(complete).items():
            sequence = complete[block]
            try:
                outcomes[sequence] = new if isinstance(new, SequenceFailed) else sequence.append(block, new)
            except Exception as error:
                outcomes[sequence] = SequenceFailed.because(error)
        return outcomes


def _filtered(logits: Mapping[S, torch.Tensor], sequences: Collection[S]) -> dict[S, Filtered]:
    found: dict[S, Filtered] = {}
    for bounded in (True, False):
        own = [sequence for sequence in sequences if sequence.filters.bounded is bounded]
        if own:
            parts = [(logits[sequence], sequence.filters) for sequence in own]
            results = each_or_failed(partial(filter_parts, bounded=bounded), parts)
            found |= zip(own, results, strict=True)
    return found


def _drawn(found: Mapping[S, Filtered], blocks: Mapping[S, Block]) -> dict[S, tuple[int, float]]:
    """The next token of plain blocks whose rows are bounded and its probability, all drawn together."""
    plain = {
        sequence: rows
        for sequence, rows in found.items()
        if isinstance(blocks[sequence], PlainBlock) and isinstance(rows, BoundedRows) and rows.finite
    }
    if not plain:
        return {}
    uniforms = np.array([sequence.token_uniform() for sequence in plain])
    return dict(zip(plain, BoundedRows.joined([*plain.values()]).draw(uniforms), strict=True))


def _levels(found: Mapping[S, Filtered], blocks: Mapping[S, Block]) -> dict[S, Level]:
    """The next level of watermarked blocks whose rows are bounded; of equally deep blocks together."""
    depths: dict[int, list[tuple[S, BlockBuilder, BoundedRows]]] = defaultdict(list)
    for sequence, rows in found.items():
        block = blocks[sequence]
        if isinstance(block, TandemBlock) and isinstance(rows, BoundedRows) and rows.finite:
            depths[block.builder.depth].append((sequence, block.builder, rows))
    levels: dict[S, Level] = {}
    for group in depths.values():
        sequences, builders, rows_of_each = zip(*group, strict=True)
        levels |= zip(sequences, next_levels(builders, BoundedRows.joined(rows_of_each)), strict=True)
    return levels


def _note_share(block: Block, own: torch.Tensor, changed: torch.Tensor, found: Filtered) -> None:
    """Takes note of how much of the block's next token is the model's own choice.

    Args:
        own: the model's rows [branches, vocab].
        changed: the same under the caller's restrictions.
    """
    if isinstance(block, TandemBlock) and not isinstance(found, SequenceFailed):
        rows = found if isinstance(found, BoundedRows) else [each for each in found if each is not None]
        if len(rows) == len(own):  # rows that are not finite fail their sequence
            block.share = min(block.share, least_share(own, changed, rows))


def _healthy(supports: Filtered) -> list[Support]:
    """The support of each path.

    Raises:
        SequenceFailed: there is none, or a row is not finite.
    """
    if isinstance(supports, SequenceFailed):
        raise supports
    each = supports.supports() if isinstance(supports, BoundedRows) else supports
    healthy = [support for support in each if support is not None]
    if len(healthy) < len(each):
        raise SequenceFailed("the model gave logits that are not finite")
    return healthy
