"""Distortion-freeness over random keys for every scheme and block size; Theorem 2 on joints."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.entropy import strength_bound
from ttmark.evaluation.experiment_cells import SETTINGS, Setting
from ttmark.evaluation.language_model import supports
from ttmark.evaluation.report.result import Table, table_of
from ttmark.evaluation.simulated import VOCABULARY, SimulatedModel
from ttmark.shared.watermark import Watermark

SUPPORTS = (1, 2, 50, 2500)
BATCH_ROWS = 400_000
SMALLEST_EXPECTED = 5.0


def distortion_table(schemes: Sequence[str], block_sizes: Sequence[int], keys: int, seed: int) -> Table:
    """Chi-square p-values of blocks drawn under `keys` random keys against the model."""
    rows = []
    for scheme in schemes:
        for block_size in sorted(block_sizes):
            watermark = Watermark(scheme, block_size)
            cells = [f"{_p_value(watermark, size, keys, seed + size):.3f}" for size in SUPPORTS]
            rows.append([scheme, block_size, *cells])
    return table_of(
        "Distortion: chi-square p-values", ["scheme", "r", *[f"{size} candidates" for size in SUPPORTS]], rows
    )


def support(size: int) -> NDArray[np.float64]:
    """Zipf-like, with ties, and from 50 candidates on with denormal and zero mass."""
    weights = 1.0 / np.arange(1, size + 1) ** 1.1
    weights[size // 2 : size // 2 + size // 4] = weights[size // 2]
    if size >= 50:
        weights[-1], weights[-2] = 0.0, 5e-324
    probs: NDArray[np.float64] = weights / weights.sum()
    return probs


def theorem_table(joints: int, seed: int) -> Table:
    """The least slack of Theorem 2 on random joints and on those of the simulated model."""
    rng = np.random.default_rng(seed)
    rows = []
    for name in ("random", "simulated model"):
        slack = [_slack(*_joint(name, rng)) for _ in range(joints)]
        rows.append([name, f"{joints:,}", f"{min(slack):.2e}", f"{np.median(slack):.3f}"])
    return table_of(
        "Theorem 2", ["joints", "number", "least f(P12) − (f(P1) + E f(P2 given 1))/√2", "median"], rows
    )


def _p_value(watermark: Watermark, size: int, keys: int, seed: int) -> float:
    from scipy.stats import chisquare  # optional: `--help` works without it

    rng, probs = np.random.default_rng(seed), support(size)
    context = rng.integers(0, 50_000, (1, watermark.context_width))
    blocks = rng.integers(0, 2**31, (size, watermark.block_size))
    counts, batch = np.zeros(size), max(1, BATCH_ROWS // size)
    for start in range(0, keys, batch):
        count = min(batch, keys - start)
        prf_keys = rng.integers(-(2**63), 2**63, (count, 2), dtype=np.int64)
        reweighted = watermark.reweight(
            prf_keys,
            np.repeat(context, count, axis=0),
            np.tile(blocks, (count, 1)),
            np.tile(probs, count),
            np.arange(count + 1) * size,
        ).reshape(count, size)
        cumulative = np.cumsum(reweighted, axis=1)
        drawn = np.sum(cumulative <= rng.random((count, 1)) * cumulative[:, -1:], axis=1)
        counts += np.bincount(drawn, minlength=size)
    expected = probs * keys
    small = expected < SMALLEST_EXPECTED
    observed = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    kept = expected > 0.0
    return float(chisquare(observed[kept], expected[kept]).pvalue) if kept.sum() > 1 else 1.0


def _joint(name: str, rng: np.random.Generator) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """P1 and the conditionals P2|1."""
    if name == "random":
        rows = int(rng.integers(1, 30))
        first = rng.dirichlet(np.full(rows, rng.uniform(0.05, 2.0)))
        return first, [rng.dirichlet(np.full(int(rng.integers(1, 30)), 0.3)) for _ in range(rows)]
    model, setting = SimulatedModel(), SETTINGS[Setting.DEFAULT]
    text = [int(rng.integers(VOCABULARY)), *rng.integers(VOCABULARY, size=8).tolist()]
    support = supports(model.branch_logits(text, [()]), setting)[0]
    paths = [(token,) for token in support.ids.tolist()]
    return support.probs, [row.probs for row in supports(model.branch_logits(text, paths), setting)]


def _slack(first: NDArray[np.float64], conditionals: list[NDArray[np.float64]]) -> float:
    joint = np.concatenate([p * row for p, row in zip(first, conditionals, strict=True)])
    single = sum(p * strength_bound(row) for p, row in zip(first, conditionals, strict=True))
    return float(strength_bound(joint) - (strength_bound(first) + single) / math.sqrt(2.0))
