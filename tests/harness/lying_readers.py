"""How often wrong keys find a text that nobody, an honest reader or a lying one has read.

`python -m tests.harness.lying_readers [TEXTS] [KEYS]`: rates over their promise, of random tokens under
Gumbel pairs and `KEYS` keys for each text. p-values are drawn for as in detection at each of the rates.
"""

import math
import sys
from collections.abc import Callable, Sequence

import numpy as np

from tests.unit.watermark.likelihood.test_evidence import LIARS
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.likelihood.evidence import log10_of_evidence, ratios_of
from ttmark.shared.watermark.likelihood.forward_backward import find_passes
from ttmark.shared.watermark.likelihood.hidden_markov_model import Rows
from ttmark.shared.watermark.likelihood.importance_sampling import NullTail, draw_seed, gate
from ttmark.shared.watermark.likelihood.laws import Floats
from ttmark.shared.watermark.likelihood.reading import Reading

LEVELS = (1e-2, 1e-3, 1e-4)
TOKENS = 80
READERS: dict[str, Callable[[Floats], Floats] | None] = {"none": None, "honest": np.copy, **LIARS}


def found_under_wrong_keys(reader: str, texts: int, keys: int) -> list[int]:
    """How many of `texts` times `keys` p-values are at most each of LEVELS, always the same ones."""
    watermark, passes, rng = Watermark("gumbel", 2, 2), find_passes(), np.random.default_rng(7)
    hits = [0] * len(LEVELS)
    for _ in range(texts):
        tokens, honest = rng.integers(0, 50_000, TOKENS), np.log(rng.random(TOKENS))
        wrong = [rng.bytes(16) for _ in range(keys)]
        says = READERS[reader]
        rows = Rows.of(watermark, ratios_of(watermark), [tokens], [says and Reading(says(honest))])
        chain = rows.chains[0]
        seed = draw_seed(b"rates", watermark.null.name, chain, tokens.tobytes())
        tails = [NullTail.draw(passes, chain, math.log10(level), seed) for level in LEVELS]
        for _, cells in rows.cells_under_each(watermark, wrong):
            log10_e = log10_of_evidence(passes, chain, cells)
            for place, (level, tail) in enumerate(zip(LEVELS, tails, strict=True)):
                near = log10_e >= gate(-math.log10(level))
                p = np.minimum(0.0, -log10_e)
                p[near] = tail.log10_p(cells[near])
                hits[place] += int(np.count_nonzero(p <= math.log10(level)))
    return hits


def main(arguments: Sequence[str]) -> None:
    """Prints a row of a Markdown table for each reader."""
    texts, keys = (int(one) for one in arguments) if arguments else (20, 20_000)
    for reader in READERS:
        hits = found_under_wrong_keys(reader, texts, keys)
        rates = (f"{found / (texts * keys) / level:.2f}" for found, level in zip(hits, LEVELS, strict=True))
        print(f"| {reader} | {' | '.join(rates)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
