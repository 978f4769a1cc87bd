"""Figures as data: panels of series with error bars; `plots` draws them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from ttmark.evaluation.intervals import Interval


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one set of bars where x is text.

    Attributes:
        y: an estimate with its interval for each x.
        dashed: the baseline's style.
    """

    label: str
    x: tuple[float, ...] | tuple[str, ...]
    y: tuple[Interval, ...]
    dashed: bool = False


Row = TypeVar("Row")


def line(
    label: str,
    rows: Sequence[Row],
    x: Callable[[Row], float],
    y: Callable[[Row], Interval],
    *,
    dashed: bool = False,
) -> Series:
    """A series with a point for each row."""
    return Series(label, tuple(map(x, rows)), tuple(map(y, rows)), dashed)


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; `scatter` is of settled experiments and drawn no more."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Literal["line", "bars", "scatter"] = "line"
    log_x: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels side by side.

    Attributes:
        name: file name without its ending.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
