"""What a language model that read a text adds: how likely its blocks are, and where it was edited.

Nothing here sees a key: a reading that is wrong, or made up, costs power and nothing else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.laws import Floats

_NATS_PER_BIT = float(np.log(2.0))
_LEAST = -1e3
_STEPS = 1024.0  # of a nat


@dataclass(frozen=True, slots=True)
class Curve:
    """How far a token's surprise moves the chance to leave a marked run towards 1: an editor may have put it.

    The defaults are fitted to edited texts that a foreign model read (docs/results/core.md).

    Attributes:
        after: share of the bits of the token after it that count with its own: that one is surprising too.
        calm: bits that move nothing.
        per_bit: what each further bit adds.
        most: of all bits together.
    """

    after: float = 0.5
    calm: float = 11.0
    per_bit: float = 0.12
    most: float = 0.97

    def of(self, bits: Floats) -> Floats:
        """Of each token with so many bits [tokens]."""
        told = bits + self.after * np.append(bits[1:], np.zeros(min(1, bits.size)))
        part: Floats = np.clip((told - self.calm) * self.per_bit, 0.0, self.most)
        return part


FITTED = Curve()


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Natural log-probability of each token of a text after those before it [tokens].

    What is not a number, or above 0, counts as 0: nothing is then expected of the block, and no edit is seen.
    """

    log_probs: Floats

    @property
    def clean(self) -> Floats:
        """Without what no model says, in steps so large that no order of sums matters."""
        said = np.clip(np.nan_to_num(self.log_probs, nan=0.0, posinf=0.0, neginf=_LEAST), _LEAST, 0.0)
        steps: Floats = np.round(said * _STEPS) / _STEPS
        return steps

    def of_blocks(self, context_width: int, block_size: int) -> Floats:
        """Log-probability of the block at each position, from the first that has a context on [positions]."""
        together: Floats = _windows(self.clean[context_width:], block_size).sum(axis=1)
        return together

    def surprise(self, context_width: int, block_size: int, curve: Curve = FITTED) -> Floats:
        """How far the chance to leave a marked run goes towards 1 before each block, 0 to 1 [positions].

        By the most surprising token of the block and its context.
        """
        parts = curve.of(-self.clean / _NATS_PER_BIT)
        most: Floats = _windows(parts, context_width + block_size).max(axis=1, initial=0.0)
        return most


def _windows(values: Floats, width: int) -> NDArray[np.float64]:
    """All runs of `width` values [.., width], none where there are fewer."""
    return sliding_window_view(values, width) if values.size >= width else np.empty((0, width))
