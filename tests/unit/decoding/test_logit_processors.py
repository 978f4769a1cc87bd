"""Bias and penalties on logits."""

from typing import Any

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
)

from tests.harness.random_model import byte_tokenizer
from tests.unit.decoding.written import VOCAB, blocks_as_token_by_token, model_logits
from ttmark.gen_service.decoding.logit_processors import LogitAdjustments, TokenCounts
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark

PROMPT, COMPLETION, PATHS = [5, 5, 8], [4, 4, 7], [(4, 1), (1, 1), (2, 8)]


def slow(
    row: list[float], adjustments: LogitAdjustments, prompt: list[int], history: list[int]
) -> list[float]:
    adjusted = []
    for token, logit in enumerate(row):
        count = history.count(token)
        value = logit + adjustments.bias.get(token, 0.0)
        if token in prompt or count:
            value = value / adjustments.repetition if value > 0 else value * adjustments.repetition
        adjusted.append(value - adjustments.frequency * count - adjustments.presence * (count > 0))
    return adjusted


def random_logits(rows: int = 3, vocab: int = 10, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn((rows, vocab), generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize(
    "adjustments",
    [
        LogitAdjustments(presence=0.5),
        LogitAdjustments(frequency=-0.7),
        LogitAdjustments(bias={2: 3.0, 9: -100.0}),
        LogitAdjustments(0.5, 0.25, {4: 1.5}),
        LogitAdjustments(repetition=1.3),
        LogitAdjustments(0.5, 0.25, {4: 1.5, 8: -9.0}, 2.0),
    ],
)
@pytest.mark.parametrize("prompt", [[], PROMPT])
def test_every_branch_is_penalised_for_what_stands_before_it_and_for_its_own_path(
    adjustments: LogitAdjustments, prompt: list[int]
) -> None:
    logits = random_logits()
    expected = [
        slow(row, adjustments, prompt, COMPLETION + list(path))
        for row, path in zip(logits.tolist(), PATHS, strict=True)
    ]
    adjustments.apply(logits, TokenCounts(prompt, COMPLETION), PATHS)
    torch.testing.assert_close(logits, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("paths", [[()], [(4,), (0,), (0,)], PATHS])
def test_repetition_penalty_and_bias_are_those_of_transformers(
    dtype: torch.dtype, paths: list[tuple[int, ...]]
) -> None:
    logits = random_logits(len(paths), dtype=dtype)
    theirs = LogitsProcessorList(
        [SequenceBiasLogitsProcessor([[[8], -0.5], [[0], 2.0]]), RepetitionPenaltyLogitsProcessor(1.3)]
    )
    ids = torch.tensor([[*PROMPT, *COMPLETION, *path] for path in paths])
    expected = theirs(ids, logits.clone())
    LogitAdjustments(bias={8: -0.5, 0: 2.0}, repetition=1.3).apply(
        logits, TokenCounts(PROMPT, COMPLETION), paths
    )
    assert torch.equal(logits, expected.to(dtype))


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_blocks_have_the_joint_distribution_that_transformers_gives_token_by_token(block_size: int) -> None:
    marking = Marking("k", 1, "p", Watermark("gumbel", block_size), bytes(16))
    sampling = SamplingParams(20, seed=1, temperature=0.8, repetition_penalty=1.7, ignore_eos=True)
    request = GenerationRequest("r", tuple(PROMPT), sampling, marking)
    sequence = Sequence(request, TextTokenizer(byte_tokenizer()), (0,))
    theirs = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(1.7), TemperatureLogitsWarper(0.8)])
    assert blocks_as_token_by_token(sequence, theirs)[0] >= 3 * VOCAB**block_size


def test_a_prompt_is_looked_through_once_however_long_the_completion_is() -> None:
    class Counted(tuple[int, ...]):
        looked = 0

        def __iter__(self) -> Any:
            Counted.looked += 1
            return super().__iter__()

    sampling = SamplingParams(50, seed=1, repetition_penalty=1.2, presence_penalty=0.5)
    sequence = Sequence(
        GenerationRequest("r", Counted(PROMPT), sampling, None), TextTokenizer(byte_tokenizer()), ()
    )
    before = Counted.looked
    for step in range(50):
        block = sequence.open_block(1)
        sequence.adjust(block, model_logits(sequence.tokens)[None])
        sequence.append(block, (step % VOCAB,))
    assert Counted.looked == before


def test_without_values_nothing_is_active() -> None:
    assert not LogitAdjustments().active
