"""docs/figures.yml: values with names, the phrases of documents that state them, and settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from tests.harness.figures.values import BadFigure, Measured, leading_number, load, section, value_at

BOOK = Path("docs/figures.yml")
RESULTS = Path("docs/results")


class Setting(BaseModel):
    """Words with numbers that were chosen, counted or given, not measured."""

    model_config = ConfigDict(extra="forbid")

    says: str
    why: Annotated[str, Field(min_length=1)]


class Book(BaseModel):
    """What docs/figures.yml holds.

    Attributes:
        results: by file of docs/results, by name: the path into the file.
        recorded: by page and section that state command, machine and number of texts, by name: a text there
            that begins with the number.
        claims: by page: phrases with the names of values as holes.
        settings: numbers of covered pages that no run gave.
        covered: pages where every number that looks measured is in a claim or a setting.
        unprinted: patterns of results files whose tables stand on no page, with the reason.
    """

    model_config = ConfigDict(extra="forbid")

    results: dict[str, dict[str, list[Any]]] = {}
    recorded: dict[str, dict[str, str]] = {}
    claims: dict[str, list[str]] = {}
    settings: list[Setting] = []
    covered: list[str] = []
    unprinted: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Known:
    """The values of a book by name, and where each is from."""

    values: Mapping[str, Measured]
    origins: Mapping[str, str]


def read_book(root: Path) -> Book:
    return Book.model_validate(yaml.safe_load((root / BOOK).read_text()))


def known_values(book: Book, root: Path) -> tuple[Known, list[str]]:
    """All values that can be had, and a line for each that cannot."""
    values: dict[str, Measured] = {}
    origins: dict[str, str] = {}
    wrong = []

    def add(name: str, origin: str, value: Measured) -> None:
        if name in values:
            raise BadFigure("two values have this name")
        values[name], origins[name] = value, origin

    for file, paths in book.results.items():
        for name, path in paths.items():
            try:
                add(name, file, value_at(load(root / RESULTS / file), path))
            except BadFigure as error:
                wrong.append(f"{BOOK}: {name} of {file}: {error}")
    for place, texts in book.recorded.items():
        for name, text in texts.items():
            try:
                add(name, place, _recorded(root, place, text))
            except BadFigure as error:
                wrong.append(f"{BOOK}: {name} of {place}: {error}")
    return Known(values, origins), wrong


def _recorded(root: Path, place: str, text: str) -> Measured:
    """The number at the head of a text that stands in a section of a page."""
    page, _, anchor = place.partition("#")
    words = r"\s+".join(map(re.escape, text.split()))
    if not re.search(rf"(?<![\d.,]){words}(?![\d]|[.,]\d)", section(root / page, anchor)):
        raise BadFigure(f"{text!r} does not stand there")
    return leading_number(text)
