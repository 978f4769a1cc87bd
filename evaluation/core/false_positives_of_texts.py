"""False positives on texts without the mark: prose, code, lists, loops, as token ids."""

import hashlib
import inspect
import json
import re
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.core.false_positives_of_scores import lower_bound, rate_cell
from ttmark.evaluation.report.result import Table, groups, table_of
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

VOCABULARY = 50_000
WORD = re.compile(r"\w+|[^\w\s]|\s+")
SHORTEST, LONGEST = 0, 600
FILES = 400


def unwatermarked(count: int, rng: np.random.Generator) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """`count` texts with their kind, drawn from the standard library and from simple patterns."""
    code = token_ids("\n".join(standard_library()))
    prose = token_ids("\n".join(docstrings()))
    for index in range(count):
        length = int(rng.integers(SHORTEST, LONGEST))
        kind = ("prose", "code", "list", "loop", "constant")[index % 5]
        if kind == "prose":
            tokens = _cut(prose, length, rng)
        elif kind == "code":
            tokens = _cut(code, length, rng)
        elif kind == "list":
            tokens = token_ids("\n".join(f"{i}. item {i % 7}" for i in range(length // 6 + 1)))[:length]
        else:
            period = 1 if kind == "constant" else int(rng.integers(1, 51))
            tokens = np.resize(rng.integers(0, VOCABULARY, period), length)
        yield kind, tokens


def token_ids(text: str) -> NDArray[np.int64]:
    """Words, signs and white space as ids: what a tokenizer does, without one."""
    words = WORD.findall(text)
    ids = {word: _identifier(word) for word in set(words)}
    return np.array([ids[word] for word in words], dtype=np.int64)


def _identifier(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little") % VOCABULARY


def _cut(tokens: NDArray[np.int64], length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    start = int(rng.integers(0, tokens.size - length))
    return tokens[start : start + length]


def standard_library() -> Iterator[str]:
    """The source files of Python's standard library, in order."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:FILES]:
        yield path.read_text(encoding="utf-8")


def docstrings() -> Iterator[str]:
    """Docstrings of numpy and scipy functions: English technical prose."""
    import scipy.optimize  # optional: `--help` works without it
    import scipy.stats

    for package in (np, scipy.stats, scipy.optimize):
        for name in sorted(dir(package)):
            text = inspect.getdoc(getattr(package, name))
            if text:
                yield text


LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)


@dataclass(frozen=True)
class Count:
    """How many of `trials` texts of a kind had a p-value of at most each of `LEVELS`."""

    scheme: str
    block_size: int
    detector: str
    text: str
    trials: int
    hits: list[int]

    def excess(self) -> float:
        """The largest lower 99 % Clopper-Pearson bound of a rate over its level; above 1 breaks a promise."""
        return max(
            lower_bound(hits, self.trials) / level for hits, level in zip(self.hits, LEVELS, strict=True)
        )


def text_counts(schemes: Sequence[str], texts: int, seed: int) -> Iterator[Count]:
    """`texts` texts per scheme, each under a key of its own; r = 2."""
    for scheme in schemes:
        watermark, rng = Watermark(scheme, 2), np.random.default_rng(seed)
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for kind, tokens in unwatermarked(texts, rng):
            key = rng.bytes(16)
            found["direct", kind].append(detect_direct(watermark, key, tokens).log10_p)
            found["aligned", kind].append(detect_aligned(watermark, key, tokens).log10_p)
            found["scan", kind].append(detect_localized(watermark, key, tokens).log10_p)
            likelihood = detect_likelihood(watermark, [key], tokens, rate=LEVELS[1])
            found["likelihood", kind].append(likelihood.log10_p)
        for (detector, kind), log10_p in found.items():
            hits = [int(np.count_nonzero(np.array(log10_p) <= np.log10(level))) for level in LEVELS]
            yield Count(scheme, 2, detector, kind, len(log10_p), hits)


def counts_table(counts: Sequence[Count]) -> Table:
    """Rates by detector and kind of text, over all schemes.

    The last columns count the (scheme, level) cells whose lower 99 % bound is above the promise, and name
    the scheme that comes nearest to that.
    """
    rows = []
    for (detector, text), members in groups(counts, lambda count: (count.detector, count.text)).items():
        trials = sum(count.trials for count in members)
        rates = [
            rate_cell(sum(count.hits[place] for count in members), trials, level)
            for place, level in enumerate(LEVELS)
        ]
        above = sum(
            lower_bound(hits, count.trials) > level
            for count in members
            for hits, level in zip(count.hits, LEVELS, strict=True)
        )
        worst = max(members, key=Count.excess)
        cells = f"{above} of {len(members) * len(LEVELS)}"
        rows.append([detector, text, f"{trials:,}", *rates, cells, f"{worst.scheme}: {worst.excess():.2f}"])
    rates_at = [f"at {level:g}" for level in LEVELS]
    worst_row = "worst scheme: lower 99 % bound / promise"
    header = ["detector", "text", "trials", *rates_at, "cells above promise", worst_row]
    return table_of("False positives", header, rows)


def write_counts(counts: Sequence[Count], path: Path) -> None:
    """All counts as JSON, one to a line."""
    lines = ",\n  ".join(json.dumps(asdict(count)) for count in counts)
    path.write_text(f'{{"levels": {json.dumps(list(LEVELS))}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
