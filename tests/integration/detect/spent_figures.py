"""What honest callers lose where evidence is spent, on the demo model and on prose.

    python tests/integration/detect/spent_figures.py mails
    python tests/integration/detect/spent_figures.py answers [COUNT] [PROMPTS]

`mails`: different mails of 126 words of prose and one signature of 24, at 1e-5: how many get a verdict.
`answers`: marked answers of 200 tokens to a few prompts, many to each: how many a bound token finds
beside one that is not.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.detection import detect
from ttmark.detect_service.spending import Spending
from ttmark.detect_service.tokenizers import TokenizerSet
from ttmark.evaluation.cells import SETTINGS, Cell, Setting
from ttmark.evaluation.inputs import read_human_texts
from ttmark.evaluation.sources import EngineSource
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH, PROMPTS_PATH
from ttmark.gen_service.engine import EngineSettings
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.records import KeyState
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.limits.answer_ledger import AnswerLedger
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.row_space import AnswerRule
from ttmark.shared.schemas.detection import CombinedRequest, Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

CALLER = Principal("token", "tenant", frozenset({Scope.DETECT}))
POOL = 16
PROFILE = {"scheme": "gumbel", "context_width": 2, "pool": POOL}  # the default of a key
CELL = Cell("gumbel", 2, SETTINGS[Setting.CHAT], 200, context_width=2, pool=POOL)
SEED = 1


async def _at_once(work: Callable[[], Any]) -> Any:
    return work()


RUN: Callable[[Callable[[], Any]], Awaitable[Any]] = _at_once


async def verdicts(backend: DetectionBackend, texts: Sequence[str], *, bound: bool) -> list[str]:
    """Of the texts, asked one after the other by one token."""
    rule = AnswerRule(12, 86_400.0, 0.1)
    spending = Spending(AnswerLedger(LocalCounters(), key=bytes(32), rule=rule), backend, lambda *_: None)
    said = []
    for number, text in enumerate(texts):
        request = CombinedRequest(inputs=[Document(text=text)])
        counted = await spending.ask(request, "combined", CALLER, RUN) if bound else None
        (result,) = detect(request, CALLER, backend, "figures", counted=counted).results
        if counted is not None:
            await spending.close(CALLER, counted)
        said.append(result.verdict + (" by what was said before" if result.asked_before else ""))
        if number % 500 == 499:
            print(number + 1, Counter(said), file=sys.stderr, flush=True)
    return said


def backend_of(tokenizer: TextTokenizer, prf_keys: Sequence[bytes]) -> DetectionBackend:
    """With one key."""
    profile = Profile.model_validate({**PROFILE, "tokenizer_fingerprint": tokenizer.fingerprint})
    version = UnlockedVersion(1, KeyState.PRIMARY, *prf_keys)
    keys = SimpleNamespace(for_tenant=lambda _: [UnlockedKey("key", "tenant", profile, 1, (version,))])
    return DetectionBackend(cast(Any, keys), TokenizerSet([tokenizer]), 100_000)


def mails(tokenizer: TextTokenizer, count: int = 5_000) -> None:
    """Prints how many were answered."""
    prose = "\n".join(read_human_texts(HUMAN_TEXTS_PATH)).split()
    signature = " ".join(prose[:24])
    step = (len(prose) - 150) // count
    texts = [" ".join(prose[24 + step * n : 150 + step * n]) + f"\n-- \n{signature}" for n in range(count)]
    backend = backend_of(tokenizer, [bytes([number]) * 16 for number in range(POOL)])
    print(f"{count} mails:", Counter(asyncio.run(verdicts(backend, texts, bound=True))))


def answers(tokenizer: TextTokenizer, count: int, prompts: int) -> None:
    """Prints what is found of them, bound and unbound."""
    cell = replace(CELL, prompts=prompts)
    source = EngineSource(str(DEMO_MODEL_PATH), PROMPTS_PATH, EngineSettings(max_sequences=64))
    made: dict[int, str] = {}
    source.generate(
        cell, range(count), SEED, lambda one: made.update({one.index: tokenizer.decode(one.token_ids)})
    )
    source.close()
    texts = [made[index] for index in range(count)]
    backend = backend_of(
        tokenizer, list(dict.fromkeys(cell.key(SEED, index) for index in range(count)))[:POOL]
    )
    for bound in (False, True):
        print(f"bound {bound}:", Counter(asyncio.run(verdicts(backend, texts, bound=bound))), flush=True)


def main() -> None:
    """Prints the figures that are asked for."""
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    what, *numbers = sys.argv[1:]
    if what == "mails":
        mails(tokenizer)
    else:
        count, prompts = (int(number) for number in numbers or ("2000", "40"))
        answers(tokenizer, count, prompts)


if __name__ == "__main__":
    main()
