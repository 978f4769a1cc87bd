"""How likely the blocks of text are: mixtures over p, one for each class of blocks.

A mixture that is wrong costs power and nothing else: it does not see the key.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

VERSION = 1
POINTS = (0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0)
"""Values of p that mixtures are over."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Weights of `POINTS` for blocks of r tokens.

    Attributes:
        plain: without a reader [points].
        limits: rising natural log-probabilities of a block between the classes of a reader [classes - 1].
        read: by class [classes, points].
    """

    plain: Floats
    limits: Floats
    read: Floats

    def classes(self, log_probs: Floats) -> NDArray[np.int64]:
        """The class of blocks that a reader found so likely [N], from 0; those not read count as the last."""
        finite = np.nan_to_num(log_probs, nan=0.0)
        return np.searchsorted(self.limits, finite)


@cache
def load_mixtures(block_size: int) -> Mixtures:
    """Those that ship with the package: fitted to texts of a model, read by another one."""
    file = resources.files("ttmark.shared.watermark") / "tables" / f"mixtures-r{block_size}.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    if data["version"] != VERSION:
        raise ValueError(f"mixtures of version {data['version']}, not {VERSION}")
    return Mixtures(np.array(data["plain"]), np.array(data["limits"]), np.array(data["read"]))


def moved(weights: Floats, points: int) -> Floats:
    """The mixtures [.., points] with every p so many points up, as far as there are: of another strength."""
    last = weights.shape[-1] - 1
    result = np.zeros_like(weights)
    for point in range(last + 1):
        result[..., min(max(point + points, 0), last)] += weights[..., point]
    return result
