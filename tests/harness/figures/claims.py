"""Phrases of documents whose numbers come from results files, and numbers that only look so."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from tests.harness.figures.figures_file import Known
from tests.harness.figures.values import NUMBER, BadFigure, Measured

LOOSE_NUMBER = rf"{NUMBER}(?:\s%)?(?:\s\[{NUMBER},\s{NUMBER}\])?"


@dataclass(frozen=True, slots=True)
class Stated:
    """What a page says in a hole of a phrase, where it stands in the page, and what it has to say."""

    name: str
    start: int
    end: int
    says: str
    due: str

    @property
    def right(self) -> bool:
        """Whether it says what it has to, lines broken anywhere."""
        return self.says.split() == self.due.split()


def names_of(phrase: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(phrase) if name is not None]


def stated(phrase: str, page: str, known: Known) -> Iterator[Stated]:
    """Every hole of every place in a page that reads as the phrase does but for its numbers."""
    pattern, due = _pattern(phrase, known.values)
    found = list(re.finditer(pattern, page, re.DOTALL))
    if not found:
        raise BadFigure(f"no such words: {phrase!r}")
    for match in found:
        for number, (name, text) in enumerate(due, start=1):
            yield Stated(name, match.start(number), match.end(number), match[number], text)


def _pattern(phrase: str, values: Mapping[str, Measured]) -> tuple[str, list[tuple[str, str]]]:
    parts, due = [], []
    for words, name, spec, _ in Formatter().parse(phrase):
        parts.append(_flexible(words))
        if name is None:
            continue
        if name not in values:
            raise BadFigure(f"no value has the name {name!r}")
        value = values[name]
        try:
            text = format(value, spec or "")
        except ValueError:
            raise BadFigure(f"{name!r} cannot be written as {spec!r}") from None
        parts.append(rf"(?<![\d.])({LOOSE_NUMBER})(?!\d)")
        due.append((name, text))
    if not due:
        raise BadFigure(f"a phrase without a value: {phrase!r}")
    return "".join(parts), due


def _flexible(words: str) -> str:
    """A pattern of words whose lines may be broken anywhere."""
    return re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(words))


def phrase_spans(words: str, page: str) -> list[tuple[int, int]]:
    """Where a page has these words, and not as a part of a longer number."""
    pattern = rf"(?<![\d.,]){_flexible(words)}(?!\d|[.,]\d)"
    return [match.span() for match in re.finditer(pattern, page)]


def corrected(page: str, wrong: list[Stated]) -> str:
    """The page with what it has to say."""
    for one in sorted(wrong, key=lambda one: -one.start):
        page = page[: one.start] + one.due + page[one.end :]
    return page


LIST = rf"{NUMBER}(?:(?:,| to| and| or)\s{NUMBER})*"
UNIT = (
    r"(?:%|ms|s|seconds?|minutes?|hours?|MiB|GiB|[kKMG]B|times|-fold|(?:tokens|requests|documents|rows)"
    r"(?:/s\b| a second| per second))"
)
MEASURED = re.compile(
    rf"(?<![\w.,-])(?:{LIST}\s?{UNIT}(?!\w)|\[{NUMBER},\s{NUMBER}\]|x\s{NUMBER}|\d+(?:\.\d+)?e-\d+|\d+\.\d+)"
)
NUMBERS_ALONE = re.compile(r"[\d\s.,%e\[\]x-]*\d[\d\s.,%e\[\]x-]*")
CODE = re.compile(
    r"^(?:```.*?^```|---\n.*?^---)|`[^`\n]+`|\]\([^)]*\)|<!--.*?-->|<[^>\s]+>", re.DOTALL | re.MULTILINE
)


def measured_spans(page: str) -> Iterator[tuple[int, int]]:
    """Where a page has shares, rates, times, sizes, intervals, decimals, and cells that hold only numbers."""
    text = CODE.sub(lambda match: re.sub(r"\S", " ", match[0]), page)
    for match in MEASURED.finditer(text):
        yield match.span()
    for row in re.finditer(r"^\|(.*)\|\s*$", text, re.MULTILINE):
        for cell in list(re.finditer(r"[^|]+", row[1]))[1:]:
            if NUMBERS_ALONE.fullmatch(cell[0]):
                yield row.start(1) + cell.start(), row.start(1) + cell.end()


def uncovered(page: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Lines with a number that looks measured and lies in none of the spans."""
    covered = {place for start, end in spans for place in range(start, end)}
    lines: dict[int, str] = {}
    for start, end in measured_spans(page):
        digits = (place for place in range(start, end) if page[place].isdigit())
        if not all(place in covered for place in digits):
            number = page.count("\n", 0, start) + 1
            lines.setdefault(number, " ".join(page[start:end].split()))
    return [f"{number}: {text!r}" for number, text in sorted(lines.items())]
