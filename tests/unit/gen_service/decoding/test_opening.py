"""The opening of a completion: no key has a say until its tokens have spent so much surprise."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.unit.gen_service.decoding import written
from tests.unit.gen_service.decoding.written import TOKENIZER
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence, opening_bits
from ttmark.gen_service.decoding.tandem_block import PlainBlock
from ttmark.shared.watermark.schemes.watermark import Watermark

VOCAB = 300
LENGTH = 60
BITS = 15.0
FILTERS: dict[str, dict[str, Any]] = {
    "bounded": {"top_k": 8, "temperature": 1.5},
    "open": {"top_p": 0.9},
    "with a tail": {"temperature": 1.3},
    "biased": {"top_k": 8, "logit_bias": {7: 2.0, 8: -100.0}, "repetition_penalty": 1.2},
}


def request(key: int | None, seed: int, bits: float = BITS, *, scheme: str = "gumbel", block_size: int = 2,
            length: int = LENGTH, grammar: Any = None, **sampling: Any) -> GenerationRequest:  # fmt: skip
    watermark = Watermark(scheme, block_size, 1)
    mark = None if key is None else Marking("k", 1, "p", watermark, bytes([key] * 16), bits)
    params = SamplingParams(length, seed=seed, ignore_eos=grammar is None, **sampling)
    return GenerationRequest("id", (1,), params, mark, unmarked_block_size=block_size, grammar=grammar)


def row_after(tokens: list[int]) -> torch.Tensor:
    """Logits [VOCAB] that follow from the last token alone; after some tokens all but one is unlikely."""
    rng = np.random.default_rng(tokens[-1])
    return torch.from_numpy(rng.choice([2.0, 60.0]) * rng.random(VOCAB)).float()


def completed(asked: GenerationRequest) -> Sequence:
    return written.completed(Sequence(asked, TOKENIZER, (0,)), row_after)


def blocks_of_opening(asked: GenerationRequest, tokens: list[int], bits: float) -> int:
    """One token after the other, from the distribution that it was drawn from."""
    reading = Sequence(asked, TOKENIZER, (0,))
    spent, blocks, size = 0.0, 0, asked.unmarked_block_size
    for start in range(0, len(tokens), size):
        if spent >= bits:
            return blocks
        for token in tokens[start : start + size]:
            row = row_after(reading.tokens)[None]
            block = PlainBlock(1)
            reading.adjust(block, row)
            support = filter_rows(row, [reading.filters])[0]
            assert support is not None
            spent -= math.log2(support.probability(token))
            reading.append(block, (token,))
        blocks += 1
    return blocks


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("name", FILTERS)
def test_marks_begin_with_the_block_after_the_one_that_spends_the_bits(name: str, block_size: int) -> None:
    found = set()
    for seed in range(3):
        marked = request(1, seed, block_size=block_size, **FILTERS[name])
        plain = request(None, seed, block_size=block_size, **FILTERS[name])
        made, unmarked = completed(marked), completed(plain)
        blocks = blocks_of_opening(plain, made.completion, BITS)
        assert made.report().reasons["opening"] == blocks
        assert made.report().watermarked_blocks > 0
        opening = blocks * block_size
        assert made.completion[:opening] == unmarked.completion[:opening]
        found.add(blocks)
    assert max(found) > 1


def test_an_opening_is_the_same_under_every_key_and_the_rest_is_not() -> None:
    made = [completed(request(key, 3, top_k=8)) for key in range(6)]
    assert len({each.report().reasons["opening"] for each in made}) == 1
    opening = 2 * made[0].report().reasons["opening"]
    assert len({tuple(each.completion[:opening]) for each in made}) == 1
    assert len({tuple(each.completion) for each in made}) == len(made)


def test_certain_tokens_spend_nothing_and_a_completion_that_ends_within_its_opening_says_so() -> None:
    made = completed(request(1, 3, top_k=1))
    assert made.report().reasons == {"opening": LENGTH // 2}
    made = Sequence(request(1, 5, length=8), TOKENIZER, (0,))
    made.append(made.open_block(8), (1,), 0.9)
    end = made.append(made.open_block(8), (0,), 0.9)
    assert end.finish_reason is None  # ignores ends of text
    assert made.report().reasons == {"opening": 1}


def test_there_is_no_opening_where_none_is_wanted() -> None:
    assert "opening" not in completed(request(0, 5, 0.0, top_k=20)).report().reasons
    assert opening_bits(request(None, 5)) == 0.0


@pytest.mark.parametrize(("length", "bits"), [(4, 1.0), (20, 5.0), (40, 10.0), (4000, 10.0)])
def test_an_opening_has_at_most_a_bit_for_every_four_tokens(length: int, bits: float) -> None:
    assert opening_bits(request(1, 5, 10.0, length=length)) == bits
