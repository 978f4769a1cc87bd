"""Power of direct detection on the simulated language model, and the search for better parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.core.generation import document_scores
from evaluation.core.language_model import CONFIDENT_SHARE
from evaluation.core.markdown import ratio_interval, table
from shared.watermark import Watermark, scheme_names
from shared.watermark.schemes.base import Parameter
from shared.watermark.schemes.registry import build_scheme

TOKENS = 200
LEVELS = (-3, -4, -5)

Configuration = tuple[str, Mapping[str, Parameter]]


@dataclass(frozen=True)
class Power:
    """Direct detection of one configuration over documents."""

    log10_p: NDArray[np.float64]
    z: NDArray[np.float64]

    def cells(self) -> list[str]:
        """Median p, TPR at the levels, mean z."""
        rates = [f"{100 * np.mean(self.log10_p <= level):.0f}" for level in LEVELS]
        return [f"{10 ** np.median(self.log10_p):.1e}", " / ".join(rates), f"{self.z.mean():.2f}"]


def measure(
    configuration: Configuration, block_size: int, documents: int, seed: int, share: float = CONFIDENT_SHARE
) -> Power:
    """Exact p-values of watermarked documents of TOKENS tokens."""
    name, parameters = configuration
    watermark = Watermark(name, block_size, parameters=parameters)
    blocks = TOKENS // block_size - watermark.warmup_blocks
    totals = document_scores(build_scheme(name, parameters), block_size, documents, blocks, seed, share).sum(
        axis=1
    )
    log10_p = [watermark.log10_p_value(float(total), blocks) for total in totals]
    z = [watermark.z_score(float(total), blocks) for total in totals]
    return Power(np.array(log10_p), np.array(z))


def power_table(documents: int, seed: int) -> str:
    """Every scheme and block size at the paper's entropy, with the gain over single tokens."""
    rows = []
    for name in scheme_names():
        single = measure((name, {}), 1, documents, seed)
        for block_size in (1, 2, 3):
            power = single if block_size == 1 else measure((name, {}), block_size, documents, seed)
            ratio, low, high = ratio_interval(power.z, single.z)
            gain = "" if block_size == 1 else f"{ratio:.2f} ({low:.2f} to {high:.2f})"
            rows.append([name, block_size, *power.cells(), gain])
    header = ["scheme", "r", "median p", "TPR at 1e-3 / 1e-4 / 1e-5, %", "mean z", "z over r = 1"]
    return table(header, rows)


SEARCH: Sequence[Configuration] = [
    *[("synthid", {"depth": depth}) for depth in (5, 10, 15, 20, 25, 30, 40)],
    *[("synthid", {"depth": depth, "weighted": True}) for depth in (10, 20, 30, 40)],
    *[("synthid", {"depth": 30, "blend": weight}) for weight in (0.5, 0.75)],
    *[("dipmark", {"layers": layers}) for layers in (1, 2, 3, 4, 5, 8)],
    *[("dipmark", {"layers": layers, "alpha": 0.5}) for layers in (1, 2, 3, 5)],
    *[("dipmark", {"layers": 5, "blend": weight}) for weight in (0.5, 0.75)],
    *[("mcmark", {"layers": layers}) for layers in (1, 2, 3, 4, 5, 7)],
    *[("mcmark", {"layers": layers, "channels": 10}) for layers in (2, 3, 5)],
    *[("mcmark", {"layers": 3, "channels": channels}) for channels in (5, 50, 100)],
    *[("mcmark", {"layers": 5, "blend": weight}) for weight in (0.5, 0.75)],
    *[("gumbel", {"blend": weight}) for weight in (1.0, 0.75)],
]


def search_table(documents: int, seed: int) -> str:
    """Depths, layers, channels, blends and layer weights at r = 2, each with its exact null."""
    rows = []
    for name, parameters in SEARCH:
        power = measure((name, parameters), 2, documents, seed)
        described = ", ".join(f"{key} {value}" for key, value in parameters.items())
        rows.append([name, described, *power.cells()])
    return table(["scheme", "parameters", "median p", "TPR at 1e-3 / 1e-4 / 1e-5, %", "mean z"], rows)


def calibration_table(documents: int, seed: int) -> str:
    """Median p of single-token SynthID-Text over the mean share of confident steps."""
    shares = (0.58, 0.6, 0.62, 0.64, 0.66, 0.7)
    rows = [[share, *measure(("synthid", {}), 1, documents, seed, share).cells()] for share in shares]
    return table(["confident share", "median p", "TPR at 1e-3 / 1e-4 / 1e-5, %", "mean z"], rows)
