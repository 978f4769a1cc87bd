"""Ends that would come too early and bad words: forbidden as transformers does, and nothing else changed."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    NoBadWordsLogitsProcessor,
    TemperatureLogitsWarper,
)

from tests.harness.random_model import byte_tokenizer
from tests.unit.decoding.written import VOCAB, blocks_as_token_by_token
from ttmark.gen_service.decoding.logit_processors import Bans
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark

END, OTHER_END = 0, 6
# Of tokens that the prompt does not hold, for which transformers counts it and we do not.
PROMPT = [7, 8, 8, 7]
BAD_WORDS = ((3,), (1, 2), (2, 1, 2), (4, 4), (5, 1, 2, 4))
MIN_TOKENS = 6


def transformers_processors(ends: list[int]) -> LogitsProcessorList:
    return LogitsProcessorList(
        [
            MinNewTokensLengthLogitsProcessor(len(PROMPT), MIN_TOKENS, ends),
            NoBadWordsLogitsProcessor([list(word) for word in BAD_WORDS]),
        ]
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_is_forbidden_is_what_transformers_forbids(dtype: torch.dtype, depth: int) -> None:
    random, theirs = np.random.default_rng(depth), transformers_processors([END, OTHER_END])
    bans, forbidden = Bans(MIN_TOKENS, {OTHER_END, END}, BAD_WORDS), 0
    for length in range(9):
        for _ in range(20):
            completion = random.integers(1, 6, length).tolist()
            paths = random.integers(1, 6, (4, depth)).tolist()
            logits = torch.from_numpy(random.standard_normal((4, VOCAB))).to(dtype)
            ids = torch.tensor([[*PROMPT, *completion, *path] for path in paths])
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


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_blocks_have_the_joint_distribution_that_transformers_gives_token_by_token(block_size: int) -> None:
    """Ends inside of blocks included: the least length is reached within one."""
    marking = Marking("k", 1, "p", Watermark("gumbel", block_size), bytes(16))
    least, ends = MIN_TOKENS + 1, [END, OTHER_END]
    options: dict[str, Any] = {"min_tokens": least, "stop_token_ids": (OTHER_END,), "bad_words": BAD_WORDS}
    sampling = SamplingParams(12, seed=1, temperature=0.8, **options)
    request = GenerationRequest("r", tuple(PROMPT), sampling, marking)
    theirs = transformers_processors(ends)
    theirs[0] = MinNewTokensLengthLogitsProcessor(len(PROMPT), least, ends)
    theirs.append(TemperatureLogitsWarper(0.8))
    sequence = Sequence(request, TextTokenizer(byte_tokenizer()), (END,))
    seen, ended = blocks_as_token_by_token(sequence, theirs, ends)
    assert seen > 2 * block_size
    assert ended


def test_a_word_that_holds_no_tokens_and_more_tokens_than_there_may_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^bad_words "):
        SamplingParams(5, bad_words=((1,), ()))
    with pytest.raises(ValueError, match=r"^min_tokens "):
        SamplingParams(5, min_tokens=6)
