"""Ends that would come too early and bad words: forbidden as transformers does, and nothing else changed."""

from collections.abc import Sequence as Tokens

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
from ttmark.gen_service.decoding.block import PlainBlock
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.logit_processors import Bans
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark

VOCAB, END, OTHER_END = 9, 0, 6
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


def model_logits(tokens: Tokens[int]) -> torch.Tensor:
    """Arbitrary logits [VOCAB] after some tokens, of which the last two matter."""
    return torch.from_numpy(3.0 * np.random.default_rng(tokens[-2:]).standard_normal(VOCAB)).float()


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_blocks_have_the_joint_distribution_that_transformers_gives_token_by_token(block_size: int) -> None:
    """Ends inside of blocks included: the least length is reached within one."""
    marking = Marking("k", 1, "p", Watermark("gumbel", block_size), bytes(16))
    sampling = SamplingParams(
        12,
        seed=1,
        temperature=0.8,
        min_tokens=MIN_TOKENS + 1,
        stop_token_ids=(OTHER_END,),
        bad_words=BAD_WORDS,
    )
    sequence = Sequence(
        GenerationRequest("r", tuple(PROMPT), sampling, marking), TextTokenizer(byte_tokenizer()), (END,)
    )
    ends = [END, OTHER_END]
    theirs = transformers_processors(ends)
    theirs[0] = MinNewTokensLengthLogitsProcessor(len(PROMPT), MIN_TOKENS + 1, ends)
    theirs.append(TemperatureLogitsWarper(0.8))
    seen = ended = 0
    while sequence.finish_reason is None:
        block = sequence.open_block(10_000)
        rows = torch.stack([model_logits([*sequence.tokens, *path]) for path in block.paths])
        sequence.adjust(block, rows)
        supports = filter_rows(rows, [sequence.filters] * len(rows))
        assert None not in supports
        if isinstance(block, PlainBlock):
            sequence.append(block, (supports[0].draw(sequence.token_uniform()),))
            continue
        block.builder.grow(supports)
        if not block.builder.complete:
            continue
        parts = block.builder.parts()
        for path, probability in ((p, m) for part in parts for p, m in zip(*part, strict=True)):
            expected, whole = 1.0, [token for token in path.tolist() if token >= 0]
            for depth, token in enumerate(whole):
                before = [*sequence.tokens, *whole[:depth]]
                scores = theirs(torch.tensor([before]), model_logits(before)[None])
                expected *= float(scores.softmax(-1)[0, token])
            assert float(probability) == pytest.approx(expected, rel=1e-4)
            seen, ended = seen + 1, ended + (whole[-1] in ends)
        blocks, mass = max(parts, key=lambda part: part[1].max())
        sequence.append(block, tuple(token for token in blocks[int(np.argmax(mass))].tolist() if token >= 0))
    assert seen > 2 * block_size
    assert ended


def test_a_word_that_holds_no_tokens_and_more_tokens_than_there_may_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^bad_words "):
        SamplingParams(5, bad_words=((1,), ()))
    with pytest.raises(ValueError, match=r"^min_tokens "):
        SamplingParams(5, min_tokens=6)
