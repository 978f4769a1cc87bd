"""Numbers of a page that look measured."""

import re
from collections.abc import Iterator, Sequence

from tests.harness.figures.values import NUMBER

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
