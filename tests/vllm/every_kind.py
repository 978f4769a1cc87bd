"""Requests of every kind, each a function of its number."""

import random

from ttmark.gen_service.decoding.json_grammar import JsonGrammars
from ttmark.gen_service.engine import GenerationRequest, Marking, SamplingParams
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark

KEY = bytes(range(16))
SCHEMES = ("synthid", "gumbel", "dipmark", "mcmark")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Maker:
    """Makes requests for one tokenizer."""

    def __init__(self, tokenizer: TextTokenizer, eos_token_ids: tuple[int, ...]) -> None:
        self.grammar = JsonGrammars(tokenizer, eos_token_ids).compile(SCHEMA)

    def request(self, number: int, *, tokens: int = 24, prompt: int | None = None) -> GenerationRequest:
        """Every fourth unmarked; r = 1, 2, 3; four schemes; filters, penalties, grammars, openings."""
        choose = random.Random(number)
        block_size, scheme = number % 4, SCHEMES[number // 4 % 4]
        length = prompt or choose.randint(2, 90)
        held = number % 11 == 10
        sampling = SamplingParams(
            max_tokens=tokens,
            temperature=0.0 if number % 13 == 12 else choose.choice([0.7, 1.0]),
            top_k=choose.choice([0, 20, 50]),
            top_p=choose.choice([0.8, 0.95, 1.0]),
            seed=number,
            ignore_eos=not held and number % 2 == 0,
            stop=("e",) if number % 7 == 6 else (),
            presence_penalty=0.5 if number % 5 == 4 else 0.0,
            repetition_penalty=1.3 if number % 5 == 3 else 1.0,
            logit_bias={7: 2.0} if number % 6 == 5 else {},
            min_tokens=9 if not held and number % 7 == 5 else 0,
            stop_token_ids=(5, 9) if number % 7 >= 5 else (),
            bad_words=((7,), (3, 4)) if not held and number % 8 == 7 else (),
            logprobs=2 if number % 9 == 8 else None,
            max_branches=choose.choice([None, 3]),
        )
        bits = 3.0 if number % 3 == 2 else 0.0
        marking = Marking("k", 1, "p", Watermark(scheme, block_size), KEY, bits) if block_size else None
        return GenerationRequest(
            f"r{number}",
            tuple(choose.randint(1, 299) for _ in range(length)),
            sampling,
            marking,
            grammar=self.grammar if held else None,
            tenant=choose.choice(["a", "b"]),
        )
