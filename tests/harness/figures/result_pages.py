"""Tables, pages and drawings that are made from results files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.harness.figures.values import load
from ttmark.evaluation.report.result import Result
from ttmark.evaluation.run_manifest import FILE as MANIFEST


def wrong_prints(folder: Path, unprinted: Iterable[str]) -> Iterator[str]:
    """A line for each page of results, table and plot that is not what the results files give.

    Args:
        folder: of results, with folders below.
        unprinted: patterns of the names of results files whose tables stand on no page.
    """
    for place in (folder, *sorted(path for path in folder.rglob("*") if path.is_dir())):
        results = {path.name: Result.load(path) for path in _to_print(place, unprinted)}
        yield from _missing_plots(place, results)
        if (place / MANIFEST).is_file():
            yield from _stale_pages(place)
        else:
            yield from _stale_tables(place, results)
    yield from (f"no results file is named {name}" for name in unprinted if not any(folder.rglob(name)))


def stale_pictures(due: Mapping[Path, str]) -> Iterator[str]:
    """A line for each drawing that is not what it has to be: text by path."""
    for path, text in due.items():
        if not path.is_file() or path.read_text() != text:
            yield f"{path.name}: is not what the results give; run python -m tests.harness.reference"


def _to_print(place: Path, unprinted: Iterable[str]) -> list[Path]:
    paths = (path for path in sorted(place.glob("*.json")) if _is_result(path))
    return [path for path in paths if not any(map(path.match, unprinted))]


def _is_result(path: Path) -> bool:
    document = load(path)
    return isinstance(document, dict) and {"experiment", "tables", "figures"} <= document.keys()


def _missing_plots(place: Path, results: Mapping[str, Result]) -> Iterator[str]:
    for name, result in results.items():
        for figure in result.figures:
            if not (place / f"{figure.name}.png").is_file():
                yield f"{name}: no plot {figure.name}.png beside it"


def _stale_pages(place: Path) -> Iterator[str]:
    from ttmark.evaluation.report.pages import (
        pages,
    )  # knows every experiment, which takes a while to import

    due = pages(place)
    for name, text in due.items():
        path = place / name
        if not path.is_file() or path.read_text() != text:
            yield f"{place.name}/{name}: is not what the results beside it give; run ttmark eval report"
    for path in place.glob("*.md"):
        if path.name not in due:
            yield f"{place.name}/{path.name}: follows from no result"


def _stale_tables(place: Path, results: Mapping[str, Result]) -> Iterator[str]:
    texts = {path.name: path.read_text() for path in place.glob("*.md")}
    printed = dict.fromkeys(texts, 0)
    for name, result in results.items():
        on = [page for page, text in texts.items() if result.markdown() in text]
        for page in on:
            printed[page] += 1
        if not on:
            yield f"{name}: no page beside it holds its tables as they are now"
    for page, count in printed.items():
        made = len(re.findall(r"^Made by `ttmark eval", texts[page], re.MULTILINE))
        if made != count:
            yield f"{page}: {made} results say what made them, {count} are of results files"
