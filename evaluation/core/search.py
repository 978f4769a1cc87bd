"""The search for better parameters of every scheme at r = 2."""

from collections.abc import Iterator

import numpy as np

from evaluation.core.markdown import mean_interval, table
from evaluation.core.power import Configuration, Power, describe, measure
from shared.watermark import Watermark, scheme_names
from shared.watermark.null_tables import load_null_table

BLOCK_SIZE = 2


def configurations() -> Iterator[Configuration]:
    """The grid: depth x weighting x blend, layers x alpha x blend, layers x channels x blend, blend."""
    for blend in (1.0, 0.75):
        for depth in (10, 15, 20, 25, 30, 40, 60):
            for weighted in (False, True):
                yield "synthid", {"depth": depth, "weighted": weighted, "blend": blend}
        for alpha in (0.3, 0.5):
            for layers in (1, 3, 5, 8, 12):
                yield "dipmark", {"layers": layers, "alpha": alpha, "blend": blend}
        for channels in (5, 10, 20, 50, 100):
            for layers in (1, 2, 3, 5, 8):
                yield "mcmark", {"layers": layers, "channels": channels, "blend": blend}
        yield "gumbel", {"blend": blend}
    yield "synthid", {"depth": 30, "blend": 0.5}
    yield "dipmark", {"layers": 5, "blend": 0.5}
    yield "mcmark", {"layers": 5, "blend": 0.5}


def search_tables(schemes: list[str], documents: int, seed: int) -> str:
    """The whole grid, then the best of each scheme beside its default.

    Documents of one scheme are the same model's, so that differences are paired. The best are measured
    again on fresh documents: the winner of a search looks better than it is.
    """
    rows, best_rows = [], []
    for scheme in (name for name in scheme_names() if name in schemes):
        found = {
            describe(configuration): (configuration, measure(configuration, BLOCK_SIZE, documents, seed))
            for configuration in configurations()
            if configuration[0] == scheme
        }
        rows += [[name, *power.cells()] for name, (_, power) in found.items()]
        best, _ = min(found.values(), key=lambda entry: float(np.median(entry[1].log10_p)))
        default, power = (measure(choice, BLOCK_SIZE, documents, seed + 1) for choice in ((scheme, {}), best))
        best_rows += [_choice((scheme, {}), default, default), _choice(best, power, default)]
    header = ["parameters", "median p", "TPR at 1e-3 / 1e-4 / 1e-5, %", "mean z"]
    best_header = [
        "choice",
        *header[1:],
        "decades of p over default, mean (95 %)",
        "null of a block, exact",
        "table for aligned and scan",
    ]
    return table(header, rows) + "\n\n" + table(best_header, best_rows)


def _choice(configuration: Configuration, power: Power, default: Power) -> list[str]:
    null = Watermark(configuration[0], BLOCK_SIZE, parameters=configuration[1]).null
    gain, low, high = mean_interval(default.log10_p - power.log10_p)
    same = power is default
    return [
        describe(configuration) + (" (default)" if same else ""),
        *power.cells(),
        "" if same else f"{gain:.2f} ({low:.2f} to {high:.2f})",
        null.name,
        "no: decoys" if load_null_table(null.name, BLOCK_SIZE) is None else "yes",
    ]
