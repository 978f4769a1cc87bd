"""What honest callers lose where evidence is spent, by marked answers of SmolLM2.

    python -m tests.integration.detect.spent_figures FOLDER ANSWERS [COUNT] [--spent-alone] [--reader]

FOLDER is SmolLM2's; ANSWERS is a file of `tests.harness.marked_answers`. Prints how many of the first COUNT
a token that sees evidence finds, and one with `detect` alone, that asks about all of them in half a day.
`--spent-alone`: asks 14 times about each of the first 100, and then about 2,000 documents of parts of them
between other words, at 1e-2; prints how many are found. `--reader`: SmolLM2 reads what is not decided
without it. `test_honest_mails.py` asks about mails with one signature.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from tests.harness.marked_answers import pool, read_answers
from ttmark.detect_service.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.detection_request import Detection
from ttmark.detect_service.key_selection import check_askable
from ttmark.detect_service.spending import Counted, Spending
from ttmark.evaluation.model_readings import ReadingModel
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.records import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.counting_filter import AnswerRule
from ttmark.shared.limits.spent_evidence import AnswerLedger
from ttmark.shared.schemas.detection import CombinedRequest, DetectionResult, Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

CALLER = Principal("token", "tenant", frozenset({Scope.DETECT}))
PROFILE = {"scheme": "gumbel", "context_width": 2, "pool": len(pool())}  # the default of a key


async def _at_once(work: Callable[[], Any]) -> Any:
    return work()


RUN: Callable[[Callable[[], Any]], Awaitable[Any]] = _at_once


async def verdicts(
    backend: DetectionBackend,
    texts: Sequence[str],
    *,
    bound: bool,
    fpr: float = 1e-5,
    chance_findings: float = 0.1,
    reader: ReadingModel | None = None,
) -> list[str]:
    """Of the texts, asked one after the other by one token."""
    rule = AnswerRule(12, 86_400.0, chance_findings)
    spending = Spending(AnswerLedger(LocalCounters(), key=bytes(32), rule=rule), backend, lambda *_: None)
    said = []
    for number, text in enumerate(texts):
        request = CombinedRequest(inputs=[Document(text=text)], fpr=fpr)
        counted = await asked(spending, request) if bound else None
        result = examined(request, backend, counted, reader)
        if counted is not None:
            await spending.close(CALLER, counted)
        said.append(result.verdict + (" by what was said before" if result.asked_before else ""))
        if number % 500 == 499:
            print(number + 1, Counter(said), file=sys.stderr, flush=True)
    return said


async def asked(spending: Spending, request: CombinedRequest) -> Counted:
    """The document of a request, counted."""
    selection = check_askable(request, CALLER, spending.backend)
    return await spending.ask(request, "combined", CALLER, selection, RUN)


def examined(
    request: CombinedRequest, backend: DetectionBackend, counted: Counted | None, reader: ReadingModel | None
) -> DetectionResult:
    """What is said of the one document of a request, after a model has read it where that may matter."""
    state: Literal["none", "up"] = "up" if reader else "none"
    detection = Detection(request, CALLER, backend, "figures", counted=counted, reader=state)
    texts = detection.look()
    (result,) = detection.answer({text: reader.read(text) for text in texts} if reader else {}).results
    return result


def backend_of(tokenizer: TextTokenizer, prf_keys: Sequence[bytes]) -> DetectionBackend:
    """With one key."""
    profile = Profile.model_validate({**PROFILE, "tokenizer_fingerprint": tokenizer.fingerprint})
    version = UnlockedVersion(1, KeyState.PRIMARY, *prf_keys)
    keys = SimpleNamespace(for_tenant=lambda _: [UnlockedKey("key", "tenant", profile, 1, (version,))])
    return DetectionBackend(cast(Any, keys), TokenizerSet([tokenizer]), 100_000)


def spending_and_parts(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Questions that spend the texts' evidence, and 2,000 documents of parts of them between other words."""
    chance = random.Random(1)
    words = sorted({word for text in texts for word in text.split()})

    def junk() -> str:
        return " ".join(chance.choices(words, k=12))

    def part() -> str:
        one = chance.choice(texts).split()
        start = chance.randrange(max(1, len(one) - 30))
        return " ".join(one[start : start + 30])

    questions = [f"{junk()} {text} {junk()}" for _ in range(14) for text in texts]
    parts = ["\n".join(f"{junk()} {part()}" for _ in range(4)) for _ in range(2_000)]
    return questions, parts


def main() -> None:
    """Prints what is found of them, bound and unbound."""
    parser = argparse.ArgumentParser(description="What honest callers lose where evidence is spent.")
    parser.add_argument("folder")
    parser.add_argument("answers", type=Path)
    parser.add_argument("count", type=int, nargs="?")
    parser.add_argument("--spent-alone", action="store_true")
    parser.add_argument("--reader", action="store_true")
    options = parser.parse_args()
    answers = read_answers(options.answers)[: options.count]
    backend = backend_of(TextTokenizer.load(options.folder), pool())
    reader = ReadingModel(options.folder) if options.reader else None
    texts = [answer.text for answer in answers]
    if options.spent_alone:
        questions, parts = spending_and_parts(texts[:100])
        for bound in (False, True):
            work = verdicts(
                backend, questions + parts, bound=bound, fpr=1e-2, chance_findings=1e9, reader=reader
            )
            print(f"bound {bound}:", Counter(asyncio.run(work)[len(questions) :]), flush=True)
        return
    print(f"{len(answers)} answers to {len({answer.prompt for answer in answers})} prompts")
    for bound in (False, True):
        print(
            f"bound {bound}:",
            Counter(asyncio.run(verdicts(backend, texts, bound=bound, reader=reader))),
            flush=True,
        )


if __name__ == "__main__":
    main()
