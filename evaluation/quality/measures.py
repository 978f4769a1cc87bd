"""What is measured of an answer, and by how much it may differ: the margins stand here before any figure."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ttmark.evaluation.intervals import Sample
from ttmark.evaluation.quality.equivalence import Difference, Margin, Verdict, judged
from ttmark.evaluation.report import Table, table_by
from ttmark.evaluation.run_folder import GeneratedText

LENGTH = Margin("length", "tokens")
AT_LIMIT = Margin("share that reaches the limit", "%", least=0.01, event=True)
REPETITION = Margin("repetition", "%", least=0.01)
DISTINCT = Margin("distinct answers to one prompt under one key", "%", event=True)
PERPLEXITY = Margin(
    "log perplexity under a third model", "nats a token", share=0.0, least=float(np.log(1.05))
)
UNLISTED = Margin("words that the list lacks", "%", least=0.01)
MATCH = Margin("exact match", "%", event=True)
ABOUT: Mapping[Margin, str] = {
    LENGTH: "tokens of the answer, its end included",
    AT_LIMIT: "answers with as many tokens as they may have",
    REPETITION: "runs of four tokens that the answer had before, of all its runs of four",
    DISTINCT: "different texts among the answers to a prompt that one key marked, of all of them",
    PERPLEXITY: "mean surprise of a token of all answers, read without prompts; 0.0488 nats are 5 %",
    UNLISTED: "words that hunspell's list of the language does not know, of all words",
    MATCH: "answers to questions of fact that have the expected words",
}
Measured = Mapping[Margin, Sample]
"""Values of the answers of an arm [answers], NaN where an answer has none."""
_RUN = 4
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


def measured(answers: Sequence[GeneratedText], limit: int) -> dict[Margin, Sample]:
    """What the tokens of answers alone say."""
    sizes = np.array([len(one.token_ids) for one in answers], dtype=np.float64)
    return {
        LENGTH: sizes,
        AT_LIMIT: (sizes >= limit).astype(np.float64),
        REPETITION: np.array([repetition(one.token_ids) for one in answers]),
    }


def repetition(tokens: Sequence[int]) -> float:
    """Share of runs of four tokens that came before; 0 for an answer without one."""
    runs = [tuple(tokens[start : start + _RUN]) for start in range(len(tokens) - _RUN + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def distinct(texts: Sequence[str], each: int, of: int) -> Sample:
    """Share of different texts among the first `of` of every `each`, at the place of the first [texts]."""
    shares = np.full(len(texts), np.nan)
    for start in range(0, len(texts), each):
        shares[start] = len({*texts[start : start + of]}) / of
    return shares


def per_token(nats: Sample, sizes: Sample) -> Sample:
    """Values [answers] that have the mean over tokens as theirs, and its spread (a ratio, linearised).

    Args:
        nats: mean surprise of the tokens of each of the first answers; 0: it has none to judge.
        sizes: tokens of each answer [answers].
    """
    known = np.full(len(sizes), np.nan)
    known[: len(nats)] = np.where(nats > 0, nats, np.nan)
    weights = np.where(np.isnan(known), np.nan, sizes)
    mean = np.nansum(known * weights) / np.nansum(weights)
    return np.asarray(mean + (known - mean) * weights / np.nanmean(weights))


def matches(texts: Sequence[str], expected: Sequence[str | None]) -> Sample:
    """1 for a text that has the expected words, of any case, 0 for another; NaN where none are expected."""
    return np.array(
        [
            np.nan if words is None else bool(re.search(rf"(?i)\b{re.escape(words)}\b", text))
            for text, words in zip(texts, expected, strict=True)
        ],
        dtype=np.float64,
    )


def unlisted(texts: Sequence[str], listed: Callable[[str], bool]) -> Sample:
    """Share of the words of each text that a list lacks; NaN without words."""
    known = lru_cache(maxsize=None)(listed)
    of_each = [[known(word.replace("\u2019", "'")) for word in _WORD.findall(text)] for text in texts]
    return np.array([1 - np.mean(found) if found else np.nan for found in of_each], dtype=np.float64)


def word_list(dictionary: str) -> Callable[[str], bool] | None:
    """Whether hunspell knows a word; None where its library is not installed.

    Args:
        dictionary: a language that the library ships, such as en_US, or a path without .dic.

    Raises:
        OSError: there is no such list.
    """
    try:
        import hunspell
    except ImportError:
        return None
    folder, _, name = dictionary.rpartition("/")
    spell: Callable[[str], bool] = hunspell.Hunspell(name, hunspell_data_dir=folder or None).spell

    def listed(word: str) -> bool:
        try:
            return spell(word)
        except UnicodeEncodeError:  # the list has an encoding, and not this letter
            return False

    return listed


def compare(marked: Measured, unmarked: Measured, clusters: Sequence[int]) -> list[Verdict]:
    """Of every measure that both arms have; pairs by place."""
    found = [Difference.of(margin, marked[margin], unmarked[margin], clusters) for margin in marked]
    return judged([one for one in found if one is not None], len(clusters))


def margins_table(measures: Sequence[Margin]) -> Table:
    """What is measured, and the margins."""
    return table_by(
        "Margins, stated before the answers are written",
        measures,
        {
            "measure": lambda one: one.measure,
            "of an answer": lambda one: ABOUT[one],
            "counts as no difference": lambda one: " or ".join(
                [f"{one.share:.0%} of the unmarked mean"] * (one.share > 0)
                + [f"{one.shown(one.least)}, if that is more" if one.share else one.shown(one.least)]
                * (one.least > 0)
            ),
        },
    )


def verdicts_table(title: str, verdicts: Sequence[Verdict], notes: Sequence[str]) -> Table:
    """One comparison, measure by measure."""
    columns: dict[str, Callable[[Verdict], Any]] = {
        "measure": lambda one: one.difference.margin.measure,
        "unmarked": lambda one: one.difference.margin.shown(one.difference.unmarked),
        "difference, 95 %": lambda one: _interval(one.difference),
        "margin": lambda one: one.difference.margin.shown(one.difference.bound),
        "p of unequal": lambda one: f"{one.p_unequal:.2g}",
        "p of unchanged": lambda one: f"{one.p_unchanged:.2g}",
        "pairs": lambda one: f"{one.difference.pairs:,}",
        "answers for 90 % power": lambda one: "" if one.answers_needed is None else f"{one.answers_needed:,}",
        "verdict": str,
    }
    return table_by(title, verdicts, columns, notes)


def _interval(of: Difference) -> str:
    shown, interval = of.margin.shown, of.interval
    return f"{shown(interval.estimate)} [{shown(interval.low)}, {shown(interval.high)}]"
