"""Power of direct detection on the simulated language model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.core.generation import document_scores
from evaluation.core.language_model import CONFIDENT_SHARE
from evaluation.core.markdown import mean_interval, median_interval, ratio_interval, table
from shared.watermark import Watermark
from shared.watermark.schemes.base import Parameter
from shared.watermark.schemes.registry import build_scheme

TOKENS = 200
LEVELS = (-3, -4, -5)

Configuration = tuple[str, Mapping[str, Parameter]]

# Each with its block sizes.
MEASURED: Sequence[tuple[Configuration, tuple[int, ...]]] = [
    (("synthid", {}), (1, 2, 3)),
    (("synthid", {"depth": 20}), (1, 2)),
    (("dipmark", {}), (1, 2, 3)),
    (("mcmark", {}), (1, 2, 3)),
    (("mcmark", {"layers": 3}), (1, 2)),
    (("gumbel", {}), (1, 2, 3)),
]

# What a feasibility study of EXPECTED_DOCUMENTS documents a cell led us to expect: TPR in % at LEVELS.
EXPECTED_DOCUMENTS = 175
EXPECTED: Mapping[tuple[str, int], tuple[int, int, int]] = {
    ("synthid", 1): (72, 56, 41),
    ("synthid", 2): (87, 79, 71),
    ("synthid, depth 20", 1): (75, 58, 42),
    ("synthid, depth 20", 2): (91, 86, 79),
    ("dipmark", 1): (49, 32, 18),
    ("dipmark", 2): (80, 63, 43),
    ("mcmark", 1): (75, 62, 42),
    ("mcmark", 2): (89, 82, 74),
    ("mcmark, layers 3", 1): (78, 63, 53),
    ("mcmark, layers 3", 2): (96, 88, 83),
    ("gumbel", 1): (88, 78, 68),
    ("gumbel", 2): (97, 95, 90),
    ("gumbel", 3): (99, 98, 98),
}
# Standard errors of both samples together beyond which they disagree: 1 % by chance.
DISAGREEMENT = 2.576


@dataclass(frozen=True)
class Power:
    """Direct detection of one configuration over documents."""

    log10_p: NDArray[np.float64]
    z: NDArray[np.float64]

    def rate(self, level: int) -> float:
        """Share of documents with a p-value of at most 10**level."""
        return float(np.mean(self.log10_p <= level))

    def cells(self) -> list[str]:
        """Median p, TPR at the levels, mean z."""
        rates = [f"{100 * self.rate(level):.0f}" for level in LEVELS]
        return [f"{10 ** np.median(self.log10_p):.1e}", " / ".join(rates), f"{self.z.mean():.2f}"]


def describe(configuration: Configuration) -> str:
    """Scheme and parameters that are not its defaults."""
    name, parameters = configuration
    return ", ".join([name, *(f"{key} {value}" for key, value in parameters.items())])


def measure(
    configuration: Configuration, block_size: int, documents: int, seed: int, share: float = CONFIDENT_SHARE
) -> Power:
    """Exact p-values of watermarked documents of TOKENS tokens."""
    name, parameters = configuration
    watermark = Watermark(name, block_size, parameters=parameters)
    blocks = TOKENS // block_size - watermark.warmup_blocks
    scheme = build_scheme(name, parameters)
    totals = document_scores(scheme, block_size, documents, blocks, seed, share).sum(axis=1)
    log10_p = [watermark.log10_p_value(float(total), blocks) for total in totals]
    z = [watermark.z_score(float(total), blocks) for total in totals]
    return Power(np.array(log10_p), np.array(z))


def power_table(schemes: Sequence[str], documents: int, seed: int) -> str:
    """Every configuration and block size at the paper's entropy, and what was expected of them."""
    powers = {
        (describe(configuration), r): measure(configuration, r, documents, seed)
        for configuration, block_sizes in MEASURED
        if configuration[0] in schemes
        for r in block_sizes
    }
    rows = []
    for (name, r), power in powers.items():
        ratio, low, high = ratio_interval(power.z, powers[name, 1].z)
        gain = "" if r == 1 else f"{ratio:.3f} ({low:.3f} to {high:.3f})"
        rows.append([name, r, *power.cells(), gain])
    header = ["scheme", "r", "median p", "TPR at 1e-3 / 1e-4 / 1e-5, %", "mean z", "z over r = 1"]
    return table(header, rows) + "\n\n" + _expectations(powers, documents)


def weighted_table(documents: int, seed: int) -> str:
    """The published weighted score of SynthID-Text beside the mean, on the same model's documents."""
    rows = []
    for r in (1, 2, 3):
        plain, weighted = (
            measure(("synthid", parameters), r, documents, seed) for parameters in ({}, {"weighted": True})
        )
        gain, low, high = mean_interval(plain.log10_p - weighted.log10_p)
        rows.append([r, *plain.cells(), *weighted.cells(), f"{gain:.2f} ({low:.2f} to {high:.2f})"])
    columns = ["median p", "TPR, %", "mean z"]
    header = ["r", *columns, *[f"weighted: {name}" for name in columns], "decades of p gained, mean (95 %)"]
    return table(header, rows)


def _expectations(powers: Mapping[tuple[str, int], Power], documents: int) -> str:
    rows = []
    for key, expected in EXPECTED.items():
        if key not in powers:
            continue
        rates = [100 * powers[key].rate(level) for level in LEVELS]
        cells = [_verdict(*pair, documents) for pair in zip(rates, expected, strict=True)]
        rows.append(
            [*key, " / ".join(map(str, expected)), " / ".join(f"{rate:.0f}" for rate in rates), *cells]
        )
    levels = [f"at 1e{level}" for level in LEVELS]
    return table(["scheme", "r", "expected TPR, %", "measured TPR, %", *levels], rows)


def _verdict(measured: float, expected: float, documents: int) -> str:
    """Whether two rates in % of different samples differ by more than chance."""
    share = (measured * documents + expected * EXPECTED_DOCUMENTS) / (documents + EXPECTED_DOCUMENTS)
    error = np.sqrt(share * (100.0 - share) * (1.0 / documents + 1.0 / EXPECTED_DOCUMENTS))
    if abs(measured - expected) <= DISAGREEMENT * error:
        return "confirmed"
    return f"refuted ({measured - expected:+.0f})"


def calibration_table(documents: int, seed: int) -> str:
    """Single-token SynthID-Text over the mean share of confident steps, the model's one knob."""
    rows = []
    for share in (0.59, 0.6, 0.61, CONFIDENT_SHARE, 0.62, 0.63):
        power = measure(("synthid", {}), 1, documents, seed, share)
        low, high = median_interval(power.log10_p)
        median, *rest = power.cells()
        rows.append([share, f"{median} ({10**low:.1e} to {10**high:.1e})", *rest])
    return table(["confident share", "median p", "TPR at 1e-3 / 1e-4 / 1e-5, %", "mean z"], rows)
