"""Forgery by marked answers that are cut into pieces, against one token with `detect` alone.

    python -m tests.integration.detect.forging_figures FOLDER ANSWERS CARRIER [QUESTIONS] [SEEDS] [OPTIONS]

FOLDER is SmolLM2's; ANSWERS is a file of `tests.harness.marked_answers`. CARRIER: `ids`, pieces as token ids
after pairs of junk; `words`, as text after two words; `spaces`, as text after white space; `run`, as text,
the beginning of an answer and then the chosen text, neither cut into pieces. Each seed forges 100 tokens,
four alternatives a block, under one key of the pool, by pieces of one answer of that key after the other,
the next where documents are no longer found. `--unbound`: nothing is spent. `--reader`: SmolLM2 reads what
is not decided without it. Prints what the attacker does not see: the standardised sum of the scores of the
chosen blocks, and log10 p of their row.
"""

import argparse
import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.harness.marked_answers import WATERMARK, MarkedAnswer, pool, read_answers
from tests.integration.detect.spent_figures import CALLER, asked, backend_of, examined
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.spending import Spending
from ttmark.evaluation.model_readings import ReadingModel
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.counting_filter import AnswerRule
from ttmark.shared.limits.spent_evidence import AnswerLedger
from ttmark.shared.schemas.detection import CombinedRequest, Document
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import detect_direct, key_lanes

WIDTH, SIZE = WATERMARK.context_width, WATERMARK.block_size
BLOCKS, ALTERNATIVES = 50, 4
RATE = 1e-5
# Questions in a row without a finding after which an attacker takes a fresh answer.
PATIENCE = 12
Pieces = Sequence[Sequence[int]]


def words_of(tokenizer: TextTokenizer) -> list[int]:
    """Tokens that are a space and a word, so that any row of them reads back."""
    texts = ((token, tokenizer.decode([token])) for token in range(tokenizer.vocab_size))
    return [token for token, text in texts if text[:1] == " " and len(text) > 3 and text[1:].isalpha()]


def pieces_of(ids: Sequence[int]) -> list[list[int]]:
    """Each block with its context."""
    starts = range(WIDTH, len(ids) - SIZE + 1, SIZE)
    return [list(ids[start - WIDTH : start + SIZE]) for start in starts]


@dataclass
class Asker:
    """A token that sees verdicts.

    Attributes:
        spending: None: nothing is spent.
    """

    tokenizer: TextTokenizer
    backend: DetectionBackend
    spending: Spending | None
    carrier: str
    chance: random.Random
    words: list[int]
    reader: ReadingModel | None
    asked: int = 0
    said: dict[str, int] = field(default_factory=dict)

    def dealt(self, candidates: Pieces, marked: Pieces, size: int) -> Document:
        """The candidates and so many marked pieces in a new order, something of no use before each."""
        ids: list[int] = []
        if self.carrier == "run":
            ids += [token for piece in marked[:size] for token in piece[WIDTH:]]
            ids += [token for piece in candidates for token in piece]
            return Document(text=self.tokenizer.decode(ids))
        pieces = [*candidates, *self.chance.sample(list(marked), size)]
        spaces = self.tokenizer.encode("\n \n\n  \n   \n")
        for piece in self.chance.sample(pieces, len(pieces)):
            between = spaces if self.carrier == "spaces" else self.words
            ids += [*self.chance.choices(between, k=SIZE), *piece]
        return Document(token_ids=ids) if self.carrier == "ids" else Document(text=self.tokenizer.decode(ids))

    async def found(self, candidates: Pieces, marked: Pieces, size: int) -> bool | None:
        """Whether they are found; None: there is no verdict."""
        self.asked += 1
        request = CombinedRequest(inputs=[self.dealt(candidates, marked, size)], fpr=RATE)
        counted = None if self.spending is None else await asked(self.spending, request)
        result = examined(request, self.backend, counted, self.reader)
        if self.spending is not None and counted is not None:
            await self.spending.close(CALLER, counted)
        self.said[result.verdict] = self.said.get(result.verdict, 0) + 1
        return None if result.verdict == "no_verdict" else result.verdict == "watermarked"


async def forged(asker: Asker, answers: Sequence[MarkedAnswer], questions: int) -> tuple[list[int], int]:
    """The forgery, and answers that were used."""
    chance, waiting = asker.chance, list(answers)
    contexts = [chance.choices(asker.words, k=WIDTH) for _ in range(BLOCKS)]
    choices = [
        [[*one, *chance.choices(asker.words, k=SIZE)] for _ in range(ALTERNATIVES)] for one in contexts
    ]
    scores, marked, size, misses = np.zeros((BLOCKS, ALTERNATIVES)), [], 0, PATIENCE
    for _ in range(questions):
        if misses >= PATIENCE:
            if not waiting:
                break
            marked, misses = pieces_of(waiting.pop(0).ids), 0
            size = len(marked)
        chosen = [chance.randrange(ALTERNATIVES) for _ in choices]
        candidates = [blocks[one] for blocks, one in zip(choices, chosen, strict=True)]
        found = await asker.found(candidates, marked, size)
        misses = 0 if found else misses + 1
        if found is not None:
            scores[np.arange(BLOCKS), chosen] += 1 if found else -1
            size = min(len(marked), max(1, size + (-1 if found else 1)))
    best = [blocks[int(np.argmax(score))] for blocks, score in zip(choices, scores, strict=True)]
    return [token for piece in best for token in piece], len(answers) - len(waiting)


def main() -> None:
    """Prints a line for each seed."""
    parser = argparse.ArgumentParser(description="Forgery by pieces of marked answers.")
    parser.add_argument("folder")
    parser.add_argument("answers", type=Path)
    parser.add_argument("carrier", choices=("ids", "words", "spaces", "run"))
    parser.add_argument("questions", type=int, nargs="?", default=2_000)
    parser.add_argument("seeds", type=int, nargs="?", default=4)
    parser.add_argument("--unbound", action="store_true")
    parser.add_argument("--reader", action="store_true")
    options = parser.parse_args()
    tokenizer, prf_keys = TextTokenizer.load(options.folder), pool()
    reader = ReadingModel(options.folder) if options.reader else None
    answers, words = read_answers(options.answers), words_of(tokenizer)
    for seed in range(options.seeds):
        backend = backend_of(tokenizer, prf_keys)
        rule = AnswerRule(12, 86_400.0, 0.1)
        ledger = AnswerLedger(LocalCounters(), key=bytes(32), rule=rule)
        spending = None if options.unbound else Spending(ledger, backend, lambda *_: None)
        asker = Asker(tokenizer, backend, spending, options.carrier, random.Random(seed), words, reader)
        mine = [answer for answer in answers if answer.key == seed % len(prf_keys)]
        ids, used = asyncio.run(forged(asker, mine, options.questions))
        prf_key, rows = prf_keys[seed % len(prf_keys)], np.array(ids).reshape(BLOCKS, -1)
        scores = WATERMARK.score(key_lanes(prf_key), rows[:, :WIDTH], rows[:, WIDTH:])
        z = WATERMARK.z_score(float(scores.sum()), BLOCKS)
        in_a_row = detect_direct(WATERMARK, prf_key, ids, phase="any").log10_p
        print(
            f"{options.carrier}, seed {seed}: z {z:.1f}, log10 p {in_a_row:.1f}, {asker.asked} questions,"
            f" {used} of {len(mine)} answers of the key used; {asker.said}",
            flush=True,
        )


if __name__ == "__main__":
    main()
