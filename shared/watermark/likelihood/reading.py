"""What a language model that read a text adds: how likely its blocks are, and where it was edited.

Nothing here sees a key: a reading that is wrong, or made up, costs power and nothing else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.laws import Floats

# Bits of a token, with a share of those of the token after it, beyond which it may be an editor's; what each
# further bit adds to the chance to leave a run; its most. Fitted to edited texts that a foreign model read
# (docs/results/core.md).
_AFTER = 0.5
_CALM_BITS, _PER_BIT, _MOST = 11.0, 0.12, 0.97
_NATS_PER_BIT = float(np.log(2.0))
_LEAST = -1e3


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Natural log-probability of each token of a text after those before it [tokens].

    What is not a number, or above 0, counts as 0: nothing is then expected of the block, and no edit is seen.
    """

    log_probs: Floats

    @property
    def clean(self) -> Floats:
        """Without what no model says."""
        return np.clip(np.nan_to_num(self.log_probs, nan=0.0, posinf=0.0, neginf=_LEAST), _LEAST, 0.0)

    def of_blocks(self, context_width: int, block_size: int) -> Floats:
        """Log-probability of the block at each position, from the first that has a context on [positions]."""
        together: Floats = _windows(self.clean[context_width:], block_size).sum(axis=1)
        return together

    def surprise(self, context_width: int, block_size: int) -> Floats:
        """How far the chance to leave a marked run goes towards 1 before each block, 0 to 1 [positions].

        By the most surprising token of the block and its context: an edited one is, and so is the next.
        """
        bits = -self.clean / _NATS_PER_BIT
        bits[:-1] += _AFTER * bits[1:]
        most = _windows(bits, context_width + block_size).max(axis=1, initial=0.0)
        part: Floats = np.clip((most - _CALM_BITS) * _PER_BIT, 0.0, _MOST)
        return part


def _windows(values: Floats, width: int) -> NDArray[np.float64]:
    """All runs of `width` values [.., width], none where there are fewer."""
    return sliding_window_view(values, width) if values.size >= width else np.empty((0, width))
