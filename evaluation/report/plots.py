"""Draws figures as PNG files, without a display."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from ttmark.evaluation.report.plot_data import Figure, Panel, Series

PANEL_INCHES = (4.2, 3.4)
DPI = 110


def draw(figure: Figure, folder: Path) -> Path:
    """Writes `<folder>/<name>.png`."""
    count = len(figure.panels)
    width, height = PANEL_INCHES
    canvas = Canvas(figsize=(width * count, height), layout="constrained")
    FigureCanvasAgg(canvas)
    for place, panel in enumerate(figure.panels, start=1):
        _draw_panel(canvas.add_subplot(1, count, place), panel)
    canvas.suptitle(figure.title, fontsize="medium")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{figure.name}.png"
    canvas.savefig(path, dpi=DPI, metadata={"Software": None})
    return path


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize="small")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.grid(visible=True, alpha=0.3)
    for number, series in enumerate(panel.series):
        if panel.kind == "bars":
            _draw_bars(axes, series, number, len(panel.series))
        else:
            _draw_points(axes, series)
    if panel.log_x:
        ticks = sorted({float(x) for series in panel.series for x in series.x})
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    axes.legend(fontsize="x-small")


def _draw_points(axes: Axes, series: Series) -> None:
    y = np.array([value.estimate for value in series.y])
    line = "--" if series.dashed else "-"
    x = np.array(series.x, dtype=np.float64)
    axes.errorbar(
        x, y, _errors(series), marker="o", markersize=3, capsize=2, linestyle=line, label=series.label
    )


def _draw_bars(axes: Axes, series: Series, number: int, of: int) -> None:
    width = 0.8 / of
    positions = np.arange(len(series.x)) + (number - (of - 1) / 2) * width
    heights = [value.estimate for value in series.y]
    axes.bar(positions, heights, width, yerr=_errors(series), capsize=2, label=series.label)
    axes.set_xticks(np.arange(len(series.x)), [str(x) for x in series.x], fontsize="x-small")


def _errors(series: Series) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Distances to the ends of the intervals, [2, points]."""
    return np.array(
        [
            [max(0.0, value.estimate - value.low) for value in series.y],
            [max(0.0, value.high - value.estimate) for value in series.y],
        ]
    )
