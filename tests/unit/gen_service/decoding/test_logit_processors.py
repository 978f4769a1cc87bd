"""Bias, penalties and bans on logits: as transformers has them, and nothing else changed."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
)

from tests.unit.gen_service.decoding.written import TOKENIZER, VOCAB, blocks_as_token_by_token, model_logits
from ttmark.gen_service.decoding.logit_processors import Bans, LogitAdjustments, TokenCounts
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.shared.watermark.schemes.watermark import Watermark

PROMPT, COMPLETION, PATHS = [5, 5, 8], [4, 4, 7], [(4, 1), (1, 1), (2, 8)]
END, OTHER_END = 0, 6
# Holds none of the tokens of bad words: transformers counts those of a prompt, and we do not.
WORDLESS_PROMPT = [7, 8, 8, 7]
BAD_WORDS = ((3,), (1, 2), (2, 1, 2), (4, 4), (5, 1, 2, 4))
MIN_TOKENS = 6


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


def marked(prompt: list[int], block_size: int, length: int, **sampling: Any) -> Sequence:
    mark = Marking("k", 1, "p", Watermark("gumbel", block_size), bytes(16))
    params = SamplingParams(length, seed=1, temperature=0.8, **sampling)
    return Sequence(GenerationRequest("r", tuple(prompt), params, mark), TOKENIZER, (END,))


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


def test_a_prompt_is_looked_through_once_however_long_the_completion_is() -> None:
    class Counted(tuple[int, ...]):
        looked = 0

        def __iter__(self) -> Any:
            Counted.looked += 1
            return super().__iter__()

    sampling = SamplingParams(50, seed=1, repetition_penalty=1.2, presence_penalty=0.5)
    sequence = Sequence(GenerationRequest("r", Counted(PROMPT), sampling, None), TOKENIZER, ())
    before = Counted.looked
    for step in range(50):
        block = sequence.open_block(1)
        sequence.adjust(block, model_logits(sequence.tokens)[None])
        sequence.append(block, (step % VOCAB,))
    assert Counted.looked == before


def test_without_values_nothing_is_active() -> None:
    assert not LogitAdjustments().active


def their_bans(ends: list[int], least: int = MIN_TOKENS) -> LogitsProcessorList:
    return LogitsProcessorList(
        [
            MinNewTokensLengthLogitsProcessor(len(WORDLESS_PROMPT), least, ends),
            NoBadWordsLogitsProcessor([list(word) for word in BAD_WORDS]),
        ]
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_is_forbidden_is_what_transformers_forbids(dtype: torch.dtype, depth: int) -> None:
    random, theirs = np.random.default_rng(depth), their_bans([END, OTHER_END])
    bans, forbidden = Bans(MIN_TOKENS, {OTHER_END, END}, BAD_WORDS), 0
    for length in range(9):
        for _ in range(20):
            completion = random.integers(1, 6, length).tolist()
            paths = random.integers(1, 6, (4, depth)).tolist()
            logits = torch.from_numpy(random.standard_normal((4, VOCAB))).to(dtype)
            ids = torch.tensor([[*WORDLESS_PROMPT, *completion, *path] for path in paths])
            expected = theirs(ids, logits.clone())
            assert bans.active(length)
            bans.apply(logits, completion, paths)
            assert torch.equal(logits, expected)
            forbidden += int(logits.isinf().sum())
    assert forbidden > 9 * 20 * 4


def test_once_the_least_length_is_reached_nothing_is_left_to_do() -> None:
    bans = Bans(MIN_TOKENS, {END}, ())
    assert [bans.active(length) for length in (0, 5, 6, 7)] == [True, True, False, False]
    assert not Bans(0, {END}, ()).active(0)


@pytest.mark.long
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_blocks_have_the_distribution_that_transformers_gives_token_by_token(block_size: int) -> None:
    """Ends inside of blocks included: the least length is reached within one."""
    temperature = TemperatureLogitsWarper(0.8)
    theirs = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(1.7), temperature])
    asked = marked(PROMPT, block_size, 20, repetition_penalty=1.7, ignore_eos=True)
    assert blocks_as_token_by_token(asked, theirs)[0] >= 3 * VOCAB**block_size
    least, ends = MIN_TOKENS + 1, [END, OTHER_END]
    options: dict[str, Any] = {"min_tokens": least, "stop_token_ids": (OTHER_END,), "bad_words": BAD_WORDS}
    theirs = their_bans(ends, least)
    theirs.append(temperature)
    asked = marked(WORDLESS_PROMPT, block_size, 12, **options)
    seen, ended = blocks_as_token_by_token(asked, theirs, ends)
    assert seen > 2 * block_size
    assert ended


def test_a_word_that_holds_no_tokens_and_more_tokens_than_there_may_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^bad_words "):
        SamplingParams(5, bad_words=((1,), ()))
    with pytest.raises(ValueError, match=r"^min_tokens "):
        SamplingParams(5, min_tokens=6)
