"""Requests of every kind, each a function of its number."""

import random
from dataclasses import replace
from typing import Any

from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.schemes.watermark import Watermark

KEY = bytes(range(16))
SCHEMES = ("synthid", "gumbel", "dipmark", "mcmark")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Maker:
    def __init__(self, tokenizer: TextTokenizer, eos_token_ids: tuple[int, ...]) -> None:
        self.tokenizer = tokenizer
        self.grammar = JsonGrammars(tokenizer, eos_token_ids).compile(SCHEMA)

    def request(self, number: int, *, tokens: int = 24, prompt: int | None = None) -> GenerationRequest:
        """Every fourth unmarked; r = 1, 2, 3; four schemes; filters, penalties, grammars, openings."""
        choose = random.Random(number)
        block_size, scheme = number % 4, SCHEMES[number // 4 % 4]
        length = prompt or choose.randint(2, 90)
        sampling = SamplingParams(
            max_tokens=tokens,
            temperature=0.0 if number % 13 == 12 else choose.choice([0.7, 1.0]),
            top_k=choose.choice([0, 20, 50]),
            top_p=choose.choice([0.8, 0.95, 1.0]),
            seed=number,
            ignore_eos=number % 2 == 0,
            stop=("e",) if number % 7 == 6 else (),
            presence_penalty=0.5 if number % 5 == 4 else 0.0,
            repetition_penalty=1.3 if number % 5 == 3 else 1.0,
            logit_bias={7: 2.0} if number % 6 == 5 else {},
            min_tokens=min(9, tokens) if number % 7 == 5 else 0,
            stop_token_ids=(5, 9) if number % 7 >= 5 else (),
            bad_words=((7,), (3, 4)) if number % 8 == 7 else (),
            logprobs=2 if number % 9 == 8 else None,
            max_branches=choose.choice([None, 3]),
        )
        bits = 3.0 if number % 3 == 2 else 0.0
        marking = Marking("k", 1, "p", Watermark(scheme, block_size), KEY, bits) if block_size else None
        request = GenerationRequest(
            f"r{number}",
            tuple(choose.randint(1, 299) for _ in range(length)),
            sampling,
            marking,
            tenant=choose.choice(["a", "b"]),
        )
        return with_grammar(request, self.grammar) if number % 11 == 10 else request


def with_grammar(request: GenerationRequest, grammar: Any) -> GenerationRequest:
    """The request with a grammar, and without what cannot stand beside one."""
    sampling = replace(request.sampling, ignore_eos=False, min_tokens=0, bad_words=())
    return replace(request, sampling=sampling, grammar=grammar)
