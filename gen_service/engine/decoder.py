"""From logits to tokens: starts blocks, grows them, and has the finished ones drawn."""

from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import dataclass

import torch

from gen_service.decoding.filters import filter_rows
from gen_service.decoding.logprobs import token_logprob
from gen_service.decoding.randomness import Draw
from gen_service.decoding.support import Support, choose
from gen_service.decoding.tandem import BlockBuilder
from gen_service.engine.errors import SequenceFailed
from gen_service.engine.request import Delta, TokenLogprob
from gen_service.engine.reweighting import Reweighter
from gen_service.engine.sequence import DEFAULT_UNMARKED_REASON, Sequence


@dataclass(frozen=True, slots=True)
class Computed:
    """Logits [branches, vocab] of one sequence: of its next token, or of its probed branches."""

    sequence: Sequence
    logits: torch.Tensor


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
    def advance(self, computed: Items[Computed]) -> dict[Sequence, Delta | SequenceFailed]:
        """New tokens, or the failure, of every sequence that has any; the others wait for their probes."""
        outcomes: dict[Sequence, Delta | SequenceFailed] = {}
        prepared: list[Computed] = []
        for item in computed:
            try:
                _prepare(item)
                prepared.append(item)
            except Exception as error:
                outcomes[item.sequence] = SequenceFailed.because(error)
        finished: list[Sequence] = []
        for item, supports in zip(prepared, _supports(prepared), strict=True):
            sequence = item.sequence
            try:
                delta = self._take(sequence, supports)
            except Exception as error:
                outcomes[sequence] = SequenceFailed.because(error)
                continue
            if delta is not None:
                outcomes[sequence] = delta
            elif sequence.builder is not None and sequence.builder.complete:
                finished.append(sequence)
        for sequence, block in self._reweighter.draw(finished).items():
            outcomes[sequence] = _append_block(sequence, block)
        return outcomes

    def _take(self, sequence: Sequence, supports: list[Support | None] | SequenceFailed) -> Delta | None:
        """Samples a plain token, or starts or grows the sequence's block."""
        if isinstance(supports, SequenceFailed):
            raise supports
        healthy = [support for support in supports if support is not None]
        if len(healthy) < len(supports):
            raise SequenceFailed("the model gave logits that are not finite")
        if sequence.builder is None and not self._begin_block(sequence):
            return _sample_plain(sequence, healthy[0])
        if sequence.builder is not None:
            sequence.builder.grow(healthy)
        return None

    def _begin_block(self, sequence: Sequence) -> bool:
        """Decides whether a watermarked block begins here; false for a token without watermark."""
        if sequence.plain_left:
            return False
        marking, size = sequence.marking, sequence.block_size
        if marking is None or sequence.tracker is None:
            sequence.begin_plain_block(1, sequence.request.unmarked_reason or DEFAULT_UNMARKED_REASON)
        elif sequence.params.greedy:
            sequence.begin_plain_block(size, "greedy")
        elif sequence.left < size:
            sequence.begin_plain_block(size, "odd_end")
        else:
            context = sequence.tracker.next_context(sequence.completion)
            if context is not None:
                limit = min(self.branch_budget, sequence.params.max_branches or self.branch_budget)
                position = sequence.completion_length
                sequence.context = context
                sequence.builder = BlockBuilder(size, sequence.ends, sequence.draws, position, limit)
                return True
            sequence.begin_plain_block(size, sequence.tracker.reason or "no_context")
        return False


def _prepare(item: Computed) -> None:
    """Keeps the model's own logits if they are to be reported, then applies bias and penalties."""
    sequence = item.sequence
    paths = [()] if sequence.builder is None else [tuple(path) for path in sequence.builder.frontier.tolist()]
    if sequence.params.logprobs is not None:
        sequence.kept_logits.update(zip(paths, item.logits.clone(), strict=True))
    if sequence.adjustments.active:
        sequence.adjustments.apply(item.logits, sequence.completion, paths)


def _supports(computed: Items[Computed]) -> list[list[Support | None] | SequenceFailed]:
    """Supports of the rows of each sequence, filtered together, and one by one if that fails."""
    if not computed:
        return []
    try:
        return list(_filter_together(computed))
    except Exception:
        return [_filter_alone(item) for item in computed]


def _filter_alone(item: Computed) -> list[Support | None] | SequenceFailed:
    try:
        return _filter_together([item])[0]
    except Exception as error:
        return SequenceFailed.because(error)


def _filter_together(computed: Items[Computed]) -> list[list[Support | None]]:
    logits = _joined([item.logits for item in computed])
    params = [item.sequence.filters for item in computed for _ in range(len(item.logits))]
    flat = iter(filter_rows(logits, params))
    return [[next(flat) for _ in range(len(item.logits))] for item in computed]


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


def _sample_plain(sequence: Sequence, support: Support) -> Delta:
    uniform = sequence.draws.uniform(sequence.completion_length, Draw.TOKEN)
    token = int(support.ids[choose(support.probs, uniform)])
    return sequence.append_plain(token, _logprobs(sequence, (token,)))


def _append_block(sequence: Sequence, block: tuple[int, ...] | SequenceFailed) -> Delta | SequenceFailed:
    if isinstance(block, SequenceFailed):
        return block
    sequence.builder = None
    try:
        return sequence.append_block(block, _logprobs(sequence, block))
    except Exception as error:
        return SequenceFailed.because(error)


def _logprobs(sequence: Sequence, tokens: tuple[int, ...]) -> tuple[TokenLogprob, ...] | None:
    top = sequence.params.logprobs
    if top is None:
        return None
    rows = [sequence.kept_logits[tokens[:depth]] for depth in range(len(tokens))]
    sequence.kept_logits.clear()
    return tuple(
        TokenLogprob(token, *token_logprob(row, token, top)) for token, row in zip(tokens, rows, strict=True)
    )
