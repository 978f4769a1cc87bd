"""The distribution of a block's score with the mark and without, by cells: laws, mixtures and L."""

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.harness.spec_detector.scheme import Scheme

Array = NDArray[Any]

TABLES = Path(__file__).parents[3] / "shared" / "watermark" / "tables"
POINTS = np.array([0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0])
STRENGTHS = (0, 2, -4)
NEUTRAL, PLAIN = 0, 1
GUMBEL_CELLS = 384
WEIGHTED_CELLS = 512


class Ratios:
    """Of a profile: Q and L by strength (0, +2, -4), class and cell, and ln p between a reader's classes."""

    def __init__(self, scheme: Scheme) -> None:
        file = json.loads((TABLES / f"mixtures-r{scheme.size}.json").read_text())
        mixtures = np.array([file["plain"], *file["read"]])
        self.class_limits: list[float] = file["limits"]
        self.classes = len(file["read"])
        laws = np.array([law(scheme, float(p)) for p in POINTS])
        null = laws[-1]
        by_strength = []
        for strength in STRENGTHS:
            places = np.clip(np.arange(POINTS.size) + strength, 0, POINTS.size - 1)
            fresh = 0.03 * null + 0.97 * mixtures @ laws[places]
            by_strength.append(np.vstack([null, fresh, 0.75 * null + 0.25 * fresh]))
        self.marked = np.array(by_strength)
        self.worth = np.where(null > 0, self.marked / np.where(null > 0, null, 1.0), 1.0)

    def spent(self, number: int) -> int:
        """The class of a block of class `number` behind a context that was there."""
        return number + 1 + self.classes


@lru_cache(64)
def _ratios(name: str, size: int, parameters: str) -> Ratios:
    profile = {"scheme": name, "block_size": size, "context_width": 1, "parameters": json.loads(parameters)}
    return Ratios(Scheme(profile))


def ratios_of(scheme: Scheme) -> Ratios:
    """Made once for each scheme, its parameters and a block size."""
    return _ratios(scheme.name, scheme.size, json.dumps(scheme.parameters, sort_keys=True))


def cells_of(scheme: Scheme, scores: Array) -> Array:
    """The cell of each score."""
    per_score, count = 1.0, scheme.layers + 1
    if scheme.name == "gumbel":
        per_score, count = 32.0, GUMBEL_CELLS
    elif scheme.parameters.get("weighted"):
        per_score, count = 1.0 / max(1.0, sum(scheme.weights) / 511), WEIGHTED_CELLS
    cells: Array = np.minimum(np.floor(scores * per_score), count - 1).astype(np.int64)
    return cells


def law(scheme: Scheme, p: float) -> Array:
    """The chances of the cells of an emitted block's score."""
    blend = float(scheme.parameters.get("blend", 1.0))
    if scheme.name == "gumbel":
        u = -np.expm1(-np.arange(1, GUMBEL_CELLS) / 32)
        reached = np.concatenate([[0.0], blend * u ** (1 / p) + (1 - blend) * u, [1.0]])
        return np.diff(reached)
    step = 0.2 if sum(scheme.weights) >= 1023 else 0.05
    parameters = json.dumps(scheme.parameters, sort_keys=True)
    low, part = _place(p, step)
    v = _layered(scheme.name, parameters, tuple(scheme.weights), step)
    exact = (1 - part) * v[low] + part * v[low + 1]
    cells = cells_of(scheme, np.arange(exact.size, dtype=np.float64))
    shares: Array = np.bincount(cells, exact / exact.sum(), WEIGHTED_CELLS)
    return shares[: WEIGHTED_CELLS if scheme.parameters.get("weighted") else scheme.layers + 1]


def _grid(step: float) -> Array:
    odds = np.arange(round(32 / step) + 1) * step - 16
    p: Array = 1 / (1 + np.exp(-odds))
    p[-1] = 1.0
    return p


def _place(p: float, step: float) -> tuple[int, float]:
    """The point of the grid below p, and the part of the way to the next."""
    last = round(32 / step)
    odds = math.inf if p >= 1.0 else math.log(p / (1 - p)) if p > 0.0 else -math.inf
    place = min(max((odds + 16) / step, 0.0), float(last))
    low = min(int(place), last - 1)
    return low, place - low


@lru_cache(64)
def _layered(name: str, parameters: str, weights: tuple[int, ...], step: float) -> Array:
    """V at each point of the grid: the distribution of the weights of the layers that are hit."""
    given: dict[str, Any] = json.loads(parameters)
    blend: float = given.get("blend", 1.0)
    grid = _grid(step)
    moves = []
    for index, p in enumerate(grid.tolist()):
        for share, hit, after in _outcomes(name, given, p):
            kept = (1 - blend) * p + blend * after
            moves.append((index, hit, share * kept / p, *_place(kept, step)))
    at, hits, chance, low, part = (np.array(column) for column in zip(*moves, strict=True))
    v = np.zeros((grid.size, sum(weights) + 1))
    v[:, 0] = 1.0
    for weight in reversed(weights):
        of_moves = chance[:, None] * ((1 - part)[:, None] * v[low] + part[:, None] * v[low + 1])
        shifted = np.zeros_like(of_moves)
        shifted[:, weight:] = of_moves[:, :-weight]
        v = np.zeros_like(v)
        np.add.at(v, at, np.where(hits[:, None], shifted, of_moves))
    return v


def _outcomes(name: str, given: dict[str, Any], p: float) -> list[tuple[float, bool, float]]:
    """Share, whether the layer is hit, and what it makes of p."""
    if name == "synthid":
        change = p * (1 - p) / 2
        return [(0.5, True, p + change), (0.5, False, p - change)]
    if name == "mcmark":
        one = 1 / given["channels"]
        mass = p + (1 - p) * one
        return [(one, True, p / mass), (1 - one, False, p * p / mass)]
    alpha: float = given["alpha"]

    def moved(f: float) -> float:
        return max(f - alpha, 0.0) + max(f - (1 - alpha), 0.0)

    places = [(i + 0.5) / 128 for i in range(128)]
    masses = [moved((1 - p) * u + p) - moved((1 - p) * u) for u in places]
    scale = p / (sum(masses) / 128)
    return [(1 / 128, u > 0.5, mass * scale) for u, mass in zip(places, masses, strict=True)]
