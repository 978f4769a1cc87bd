"""Tables and drawings that are made from results files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tests.harness.figures.values import load
from ttmark.evaluation.report import Result


def wrong_prints(folder: Path, unprinted: Iterable[str]) -> Iterator[str]:
    """A line for each table of a page of results, but `unprinted`, that is not what results files give."""
    for place in (folder, *sorted(path for path in folder.rglob("*") if path.is_dir())):
        results = {path.name: Result.load(path) for path in _to_print(place, unprinted)}
        yield from _stale_tables(place, results)
    files = [*folder.rglob("*.json")]
    for name in unprinted:
        if not any(path.match(name) for path in files):
            yield f"no results file is named {name}"


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
    return isinstance(document, dict) and {"experiment", "command", "tables"} <= document.keys()


def _is_on(text: str, result: Result) -> bool:
    """Whether a page has the tables and what made them; another page may name the machine."""
    *tables, made = result.parts()
    elsewhere = replace(result, machine=None).parts()[-1]
    return all(table in text for table in tables) and (made in text or elsewhere in text)


def _stale_tables(place: Path, results: Mapping[str, Result]) -> Iterator[str]:
    texts = {path.name: path.read_text() for path in place.glob("*.md")}
    printed = dict.fromkeys(texts, 0)
    for name, result in results.items():
        on = [page for page, text in texts.items() if _is_on(text, result)]
        for page in on:
            printed[page] += 1
        if not on:
            yield f"{name}: no page beside it holds its tables as they are now"
    for page, count in printed.items():
        made = len(re.findall(r"^Made by `(?:ttmark eval|python -m)", texts[page], re.MULTILINE))
        if made != count:
            yield f"{page}: {made} results say what made them, {count} are of results files"
