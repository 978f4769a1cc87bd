"""What a reader said of a text, by tokens: classes of blocks and x."""

from collections.abc import Sequence

import numpy as np

from tests.harness.spec_detector.ratios import PLAIN, Array, Ratios
from tests.harness.spec_detector.scheme import Scheme

LN2 = float(np.log(2.0))
Parts = Sequence[tuple[int, float]]
"""Where each part ends in the bytes of the text, and its ln p."""


def token_ends(text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """Where each token ends in the text's UTF-8, from its span of characters."""

    def byte(place: int) -> int:
        return len(text[:place].encode())

    ends = [byte(end) for _, end in spans]
    cut = [i for i in range(len(spans) - 1) if spans[i + 1][0] < spans[i][1]]
    for i in cut:
        last = spans[i][1] - 1
        same = [j for j in cut if spans[j][1] - 1 == last]
        size = byte(last + 1) - byte(last)
        ends[i] = byte(last) + size * (same.index(i) + 1) // (len(same) + 1)
    if ends:
        ends[-1] = len(text.encode())
    return [max(ends[: i + 1]) for i in range(len(ends))]


class Said:
    """Bits of each token, from parts of the whole text in order and `token_ends`."""

    def __init__(self, parts: Parts, ends: Sequence[int]) -> None:
        places = np.array([0, *(end for end, _ in parts)])
        until = np.cumsum([0.0, *(-min(max(value, -9999.0), 0.0) / LN2 for _, value in parts)])
        at = np.interp([0, *ends], places, until)
        bits = np.maximum(at[1:] - at[:-1], 0.0)
        self._nats = np.round(np.clip(-bits * LN2, -1000.0, 0.0) * 1024.0) / 1024.0
        self._bits = -self._nats / LN2

    def classes(self, scheme: Scheme, ratios: Ratios) -> list[int]:
        """Of the blocks at the positions."""
        starts = range(scheme.width, self._nats.size - scheme.size + 1)
        sums = [self._nats[start : start + scheme.size].sum() for start in starts]
        return [PLAIN + 1 + sum(limit < value for limit in ratios.class_limits) for value in sums]

    def surprise(self, scheme: Scheme) -> Array:
        """x at the positions."""
        width = scheme.width + scheme.size
        surprise = self._bits + 0.5 * np.append(self._bits[1:], 0.0)
        most = [surprise[at : at + width].max() for at in range(surprise.size - width + 1)]
        return np.clip((np.array(most) - 11.0) * 0.12, 0.0, 0.97)
