"""Compares numbers of pages with results by docs/figures.yml: `python -m tests.harness.figures [--write]`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from tests.harness.figures.claims import Stated, corrected, names_of, phrase_spans, stated, uncovered
from tests.harness.figures.figures_file import BOOK, RESULTS, Book, Known, known_values, read_book
from tests.harness.figures.result_pages import stale_pictures, wrong_prints
from tests.harness.figures.values import BadFigure
from tests.harness.reference.result_plots import pictures

ROOT = Path(__file__).resolve().parents[3]
Spans = list[tuple[int, int]]


def check(root: Path, *, write: bool = False) -> list[str]:
    """A line for each number that is not what it has to be."""
    book = read_book(root)
    known, wrong = known_values(book, root)
    spans: dict[str, Spans] = {}
    for page, phrases in book.claims.items():
        lines, spans[page] = _check_page(root / page, page, phrases, known, write=write)
        wrong += lines
    wrong += _unused(book, known)
    wrong += _settings(book, root, spans)
    wrong += wrong_prints(root / RESULTS, book.unprinted)
    return wrong


def _check_page(
    path: Path, page: str, phrases: Sequence[str], known: Known, *, write: bool
) -> tuple[list[str], Spans]:
    if not path.is_file():
        return [f"{page}: there is no such page"], []
    text, wrong, lines = path.read_text(), [], []
    spans: Spans = []
    for phrase in phrases:
        try:
            for one in stated(phrase, text, known):
                spans.append((one.start, one.end))
                if not one.right:
                    wrong.append(one)
        except BadFigure as error:
            lines.append(f"{page}: {error}")
    if write and wrong:
        path.write_text(corrected(text, wrong))
        return _check_page(path, page, phrases, known, write=False)
    return [*lines, *(_line(page, text, one, known) for one in wrong)], spans


def _line(page: str, text: str, one: Stated, known: Known) -> str:
    place = f"{page}:{text.count(chr(10), 0, one.start) + 1}"
    words = " ".join(text[max(0, one.start - 50) : one.end + 30].split())
    origin = f"{one.name}, {known.origins[one.name]}"
    return f"{place}: says {one.says!r}, should say {one.due!r} ({origin}): ... {words} ..."


def _unused(book: Book, known: Known) -> Iterator[str]:
    used = {name for phrases in book.claims.values() for phrase in phrases for name in names_of(phrase)}
    yield from (f"{BOOK}: no page states {name}" for name in known.values if name not in used)


def _settings(book: Book, root: Path, spans: dict[str, Spans]) -> Iterator[str]:
    """Numbers that look measured and are in no claim or setting; settings that no page has."""
    pages: dict[str, str] = {}
    for name in book.covered:
        found = sorted(root.glob(name))
        if not found:
            yield f"{BOOK}: no page {name}"
        pages |= {path.relative_to(root).as_posix(): path.read_text() for path in found}
    for setting in book.settings:
        if not any(phrase_spans(setting.says, text) for text in pages.values()):
            yield f"{BOOK}: no page has the setting {setting.says!r}"
    for page, text in pages.items():
        chosen = [span for setting in book.settings for span in phrase_spans(setting.says, text)]
        for line in uncovered(text, [*spans.get(page, []), *chosen]):
            yield f"{page}:{line}: looks measured; {BOOK} has no claim and no setting for it"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--write", action="store_true", help="write the values of the files into the pages")
    options = parser.parse_args(argv)
    try:
        wrong = [*check(ROOT, write=options.write), *stale_pictures(pictures())]
    except ValidationError as error:
        wrong = [f"{BOOK}: {error}"]
    for line in wrong:
        print(line)
    print(f"figures: {len(wrong)} wrong" if wrong else "figures: every number is that of its results file")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
