"""How many tokens a text usually needs: measured. The theoretical least is what no real text reaches."""

import math

from ttmark.shared.watermark import Watermark

# Tokens at which half of marked texts of SmolLM2-135M are found at 1e-1, 1e-2, ..., by score distribution and
# block size. Gumbel pairs as new keys make them, opening and all, by the likelihood ratio without a reader:
# `tests.harness.typical_lengths`. The others in direct detection, marked from the start, T 0.7, top-k 50,
# top-p 0.9: `ttmark eval combined` up to commit 8908aa3. In docs/spec.md, Verdicts.
_MEDIANS: dict[tuple[str, int], tuple[int, ...]] = {
    ("exponential", 2): (24, 36, 48, 60, 71, 80, 94, 104, 114, 124, 134, 144, 152, 160, 170, 180, 188, 196),
    ("binomial-30-0.5", 2): (12, 23, 35, 50, 67, 78, 93, 107, 121, 143, 164, 175, 192),
    ("binomial-12-0.5", 2): (10, 24, 36, 59, 84, 100, 126, 141, 163, 184),
}


def typical_tokens(watermark: Watermark, log10_p: float) -> int:
    """The tokens that half of the texts measured needed for such a p-value, or more.

    A scheme that was not measured counts as the one of those measured that needs the fewest. Below the
    smallest p-value that half of the texts had, its length is what they needed at least.
    """
    decades = max(1, math.ceil(-log10_p))
    own = _MEDIANS.get((watermark.null.name, watermark.block_size))
    tables = _MEDIANS.values() if own is None else (own,)
    return min(medians[min(decades, len(medians)) - 1] for medians in tables)
