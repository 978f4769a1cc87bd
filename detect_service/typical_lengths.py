"""How many tokens a text usually needs: measured. The theoretical least is what no real text reaches."""

import math

from ttmark.shared.watermark import Watermark

# Of texts of SmolLM2-135M, pairs, top-k 50, top-p 0.9, T 0.7: the tokens at which half of 64 texts had
# log10 p <= -1, -2, ... in direct detection; by score distribution. Made by `ttmark eval combined`
# (docs/results/detection.md).
_MEDIANS: dict[tuple[str, int], tuple[int, ...]] = {
    ("exponential", 2): (9, 18, 30, 53, 66, 77, 97, 115, 125, 133, 161, 181),
    ("binomial-30-0.5", 2): (12, 23, 35, 50, 67, 78, 93, 107, 121, 143, 164, 175, 192),
    ("binomial-12-0.5", 2): (10, 24, 36, 59, 84, 100, 126, 141, 163, 184),
}


def typical_tokens(watermark: Watermark, log10_p: float) -> int | None:
    """The tokens at which half of the texts measured had such a p-value; None where that was not measured."""
    medians = _MEDIANS.get((watermark.null.name, watermark.block_size), ())
    decades = max(1, math.ceil(-log10_p))
    return medians[decades - 1] if decades <= len(medians) else None
