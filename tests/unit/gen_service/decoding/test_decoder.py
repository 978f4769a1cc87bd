"""Decisions on all sequences of a pass at once, against each row and each block on its own."""

import math

import numpy as np
import pytest
import torch

from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.filtered_tokens import choose
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.request import (
    Delta,
    GenerationRequest,
    Marking,
    SamplingParams,
    SequenceFailed,
)
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.gen_service.decoding.tandem_block import NO_TOKEN, PlainBlock
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.prf import key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark

VOCAB = 600
END = 0
BRANCHES = 6
FILTERS = (
    {"top_k": 50, "top_p": 0.9, "temperature": 0.7},
    {"top_k": 8, "repetition_penalty": 1.4},
    {"top_k": 40, "min_p": 0.05, "frequency_penalty": 0.5},
    {"top_p": 0.8},  # not bounded
    {"top_k": 20, "ignore_eos": True, "temperature": 1.5},
    {"temperature": 0.0},
)
TOKENIZER = TextTokenizer(byte_tokenizer())


def sequences() -> list[Sequence]:
    """One for each scheme, block size and none, of various filters."""
    watermarks = [
        None,
        *(Watermark(s, r) for s in ("synthid", "dipmark", "mcmark", "gumbel") for r in (1, 2, 3)),
    ]
    found = []
    for number, watermark in enumerate([*watermarks, None, None, watermarks[2], watermarks[2]]):
        marking = None if watermark is None else Marking("k", 1, "p", watermark, bytes([number] * 16))
        sampling = SamplingParams(24, seed=number, **FILTERS[number % len(FILTERS)])
        found.append(
            Sequence(GenerationRequest(str(number), (number + 1,), sampling, marking), TOKENIZER, (END,))
        )
    return found


def logits_after(sequence: Sequence, dtype: torch.dtype) -> torch.Tensor:
    """Logits [paths, VOCAB] that follow from the tokens alone; of a half format many are equal."""
    block = sequence.block
    paths = [()] if block is None else block.paths
    rows = []
    for path in paths:
        rng = np.random.default_rng([*sequence.tokens, *path])
        rows.append(torch.from_numpy(2.0 * rng.standard_normal(VOCAB)))
        rows[-1][END] += 1.0
    return torch.stack(rows).to(dtype)


def one_by_one(sequence: Sequence, dtype: torch.dtype) -> list[int]:
    """A completion whose rows are filtered, and whose blocks are grown and drawn, one at a time."""
    while sequence.finish_reason is None:
        logits = logits_after(sequence, dtype)
        block = sequence.open_block(BRANCHES)
        sequence.adjust(block, logits)
        supports = [filter_rows(row[None], [sequence.filters])[0] for row in logits]
        healthy = [support for support in supports if support is not None]
        if isinstance(block, PlainBlock):
            sequence.append(block, (healthy[0].draw(sequence.token_uniform()),))
            continue
        block.builder.grow(healthy)
        if block.builder.complete:
            blocks, mass = (np.concatenate(parts) for parts in zip(*block.builder.parts(), strict=True))
            weighted = block.marking.watermark.reweight(
                key_lanes(block.marking.prf_key)[None],
                np.array([block.context]),
                blocks,
                mass / math.fsum(mass),
                np.array([0, len(mass)]),
            )
            drawn = blocks[choose(weighted, block.uniform)]
            sequence.append(block, tuple(drawn[drawn != NO_TOKEN].tolist()))
    return sequence.completion


def in_batches(all_of: list[Sequence], dtype: torch.dtype) -> list[list[int]]:
    """Their completions, taken further together."""
    decoder = Decoder(BRANCHES)
    while running := [sequence for sequence in all_of if sequence.finish_reason is None]:
        outcomes = decoder.decide({sequence: logits_after(sequence, dtype) for sequence in running})
        assert all(isinstance(outcome, Delta) for outcome in outcomes.values())
    return [sequence.completion for sequence in all_of]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_batch_gives_the_tokens_that_rows_and_blocks_give_one_by_one(dtype: torch.dtype) -> None:
    expected = [one_by_one(sequence, dtype) for sequence in sequences()]
    assert in_batches(sequences(), dtype) == expected
    assert len({len(tokens) for tokens in expected}) > 1  # some ended early


def test_rows_that_are_not_finite_fail_their_sequences_alone() -> None:
    together, alone = sequences(), sequences()
    broken = {0, 2, 3}  # plain, pairs, not bounded
    decoder = Decoder(BRANCHES)
    logits = {sequence: logits_after(sequence, torch.float32) for sequence in together}
    for number in broken:
        logits[together[number]][0, 5] = math.nan
    outcomes = decoder.decide(logits)
    for number, (sequence, other) in enumerate(zip(together, alone, strict=True)):
        if number in broken:
            assert isinstance(outcomes[sequence], SequenceFailed)
        else:
            expected = Decoder(BRANCHES).decide({other: logits_after(other, torch.float32)})
            assert outcomes.get(sequence) == expected.get(other)
