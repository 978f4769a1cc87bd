"""Completions over rows that a test makes, and whether blocks and tokens come as often as they should."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Sequence as Tokens
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.gen_service.decoding.tandem_block import PlainBlock
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.schemes.watermark import Watermark

TOKENIZER = TextTokenizer(byte_tokenizer())
VOCAB = 9
RowAfter = Callable[[list[int]], torch.Tensor]


def model_logits(tokens: Tokens[int]) -> torch.Tensor:
    """Arbitrary logits [VOCAB] after some tokens, of which the last two matter."""
    return torch.from_numpy(3.0 * np.random.default_rng(tokens[-2:]).standard_normal(VOCAB)).float()


def blocks_as_token_by_token(sequence: Sequence, theirs: Any, ends: Collection[int] = ()) -> tuple[int, int]:
    """Completes it over `model_logits`; each candidate has the probability that `theirs` gives its tokens.
    How many candidates there were, and how many of them end the text.
    """
    seen = ended = 0
    while sequence.finish_reason is None:
        block = sequence.open_block(10_000)
        rows = torch.stack([model_logits([*sequence.tokens, *path]) for path in block.paths])
        sequence.adjust(block, rows)
        filtered = filter_rows(rows, [sequence.filters] * len(rows))
        supports = [support for support in filtered if support is not None]
        assert len(supports) == len(filtered)
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
    return seen, ended


def asked_rows(sequence: Sequence, row_after: RowAfter) -> torch.Tensor:
    """What a pass computes for it: a row after each path of its block."""
    paths = [()] if sequence.block is None else sequence.block.paths
    return torch.stack([row_after([*sequence.tokens, *path]) for path in paths])


def completed(sequence: Sequence, row_after: RowAfter) -> Sequence:
    """To its end."""
    decoder = Decoder(8)
    while sequence.finish_reason is None:
        outcome = decoder.decide({sequence: asked_rows(sequence, row_after)}).get(sequence)
        assert outcome is None or isinstance(outcome, Delta)
    return sequence


def under_keys(
    count: int, watermark: Watermark, rows: Mapping[int, torch.Tensor], params: SamplingParams
) -> Iterable[Sequence]:
    """Texts of four tokens, each under a key and with a seed of its own, decided in the same passes."""
    sequences = []
    for key in range(count):
        mark = Marking("k", 1, "p", watermark, np.random.default_rng(key).bytes(16))
        request = GenerationRequest("id", (1,), replace(params, seed=key), mark)
        sequences.append(Sequence(request, TOKENIZER, (0,)))
    decoder = Decoder(2)
    while unfinished := [each for each in sequences if each.completion_length < 4]:
        decoder.decide({each: asked_rows(each, lambda tokens: rows[tokens[-1]]) for each in unfinished})
    return sequences


def follow(drawn: Counter[tuple[int, ...]], expected: Mapping[tuple[int, ...], float], texts: int) -> bool:
    """Chi-square at the 0.001 level; of what is to come less than five times, all is one cell."""
    likely = [path for path, mass in expected.items() if mass * texts >= 5]
    counts, masses = [drawn[path] for path in likely], [expected[path] * texts for path in likely]
    if texts - sum(masses) > 1.0:
        counts, masses = [*counts, texts - sum(counts)], [*masses, texts - sum(masses)]
    return bool(chisquare(counts, np.array(masses) * (sum(counts) / sum(masses))).pvalue > 0.001)
