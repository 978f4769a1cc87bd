"""`python -m tests.harness.file_alarms SMOLLM2 FOLDER [FILES [KEY_SETS]]`: false alarms of people's files.

It needs what `file_routes` and `pdf_routes` need. Passages by people become so many files of each route, in
FOLDER, and are asked about under so many sets of fresh keys. Prints by format how often a mark is found, with
exact intervals, and the p-value of a Kolmogorov-Smirnov test against p below a uniform one.
"""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

from scipy.stats import kstest

from tests.harness import file_routes, pdf_routes
from ttmark.detect_service import detectors
from ttmark.detect_service.ask import Means, ask_here
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.detect_service.question import Question
from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.unmarked_texts import shipped_sets
from ttmark.library.tokenizer import text_tokenizer
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection.detect import CombinedRequest, Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest

RATES = (0.1, 0.01, 0.001)
SEED = 52
# What p-values are drawn from takes longer than many questions: it is drawn anew for so many key sets.
_DRAWN_FOR = 75
_NEAR = 0.3  # a text with a larger p at the first rate is not asked about at the others
_CALLER = Principal("caller", "tenant", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))
_OTHERS: dict[str, Callable[[str], bytes]] = {
    "text.txt": str.encode,
    "text.md": str.encode,
    "a row.csv": lambda text: b'id,text\n1,"%s"\n' % text.replace('"', '""').encode(),
    "a mail.mbox": lambda text: b"From a Thu Jan  1 00:00:00 2026\nSubject: Notes\n\n" + text.encode(),
}


def files(folder: Path, count: int) -> Iterator[Path]:
    """Those of each route, made where they are not there yet."""
    people = [of_one.texts for of_one in shipped_sets(count, SEED) if of_one.name.startswith("people")]
    texts = [text for passages in zip(*people, strict=True) for text in passages]
    printed = {f"{name}.pdf": make for name, make in pdf_routes.Routes(folder).all().items()}
    for place, name in enumerate([*printed, *file_routes.FILES, *_OTHERS]):
        for number in range(count):
            path, text = folder / f"{place}-{number}{Path(name).suffix}", texts[(place + number) % len(texts)]
            if not path.exists() and name in printed:
                printed[name](text, path)
            elif not path.exists():
                path.write_bytes((file_routes.FILES | _OTHERS)[name](text))
            yield path


def keys_of(generator: random.Random, profile: Profile, count: int) -> FixedKeys:
    versions = [UnlockedVersion(1, KeyState.PRIMARY, generator.randbytes(16)) for _ in range(count)]
    tenant = _CALLER.tenant
    return FixedKeys([UnlockedKey(f"{n}", tenant, profile, 1, (one,)) for n, one in enumerate(versions)])


def asked_once() -> Any:
    """Of questions about a text at a rate what needs no key is made once."""
    kept: dict[tuple[Any, ...], LikelihoodTest] = {}

    def find(watermark: Any, tokens: Any, **options: Any) -> LikelihoodTest:
        name = tokens.tobytes(), options["rate"], options["secret"]
        if name not in kept:
            kept[name] = LikelihoodTest(watermark, tokens, **options)
        return kept[name]

    return mock.patch.object(detectors, "LikelihoodTest", find)


def p_and_alarms(path: Path, tokenizer: TextTokenizer, key_sets: int) -> list[list[float]]:
    """Of each key set p at the first rate, and for each rate whether a mark was found."""
    made = {"scheme": "gumbel", "block_size": 2, "context_width": 2, "parameters": {}}
    profile = Profile.model_validate(made | {"tokenizer_fingerprint": tokenizer.fingerprint})
    generator, found = random.Random(path.name), extract_text(path.name, path.read_bytes())
    document, asked = Document(text=found.text or found.parts[0].text), []
    with asked_once():
        for number in range(key_sets):
            keys, secret = keys_of(generator, profile, (1, 3)[number % 2]), b"%d" % (number // _DRAWN_FOR)
            means = Means(DetectionBackend(keys, TokenizerSet([tokenizer]), 1 << 40, draw_secret=secret))
            row: list[float] = []
            for rate in RATES:
                if not row or row[0] < _NEAR:
                    question = Question(CombinedRequest(inputs=[document], fpr=rate), _CALLER)
                    (result,) = ask_here(question, means).results
                    row = row or [10 ** (result.log10_p or 0.0)]
                row.append(result.verdict == "watermarked")
            asked.append(row)
    return asked


def main() -> None:
    """Prints the table, of what was asked before Ctrl-C where it is typed."""
    model, folder, *more = sys.argv[1:]
    count, key_sets = (int(number) for number in (more + ["12", "150"][len(more) :]))
    paths = list(files(Path(folder), count))
    random.Random(SEED).shuffle(paths)
    results: dict[str, list[list[float]]] = {}
    with suppress(KeyboardInterrupt):
        for path in paths:
            results.setdefault(path.suffix, []).extend(p_and_alarms(path, text_tokenizer(model), key_sets))
    print("| format | trials | 1e-1 | 1e-2 | 1e-3 | uniform or above |\n|---|---|---|---|---|---|")
    for ending, asked in [*sorted(results.items()), ("all", list(chain(*results.values())))]:
        p_values, *alarms = zip(*asked, strict=True)
        shown = [str(clopper_pearson(int(sum(found)), len(asked))) for found in alarms]
        above = kstest(p_values, "uniform", alternative="greater").pvalue
        print(f"| {ending} | {len(asked):,} | {' | '.join(shown)} | {above:.2f} |")


if __name__ == "__main__":
    main()
