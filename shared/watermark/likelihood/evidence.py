"""How strongly a text carries the mark of some keys: E, and a p-value as sharp as the question needs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.tokens import check_tokens
from ttmark.shared.watermark.likelihood.chain import Chain
from ttmark.shared.watermark.likelihood.laws import Cells, Floats
from ttmark.shared.watermark.likelihood.passes import Passes, find_passes, log10_mean, log10_of
from ttmark.shared.watermark.likelihood.ratios import Ratios
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.likelihood.rows import Rows
from ttmark.shared.watermark.likelihood.sharp import NullTail, draw_seed, gate
from ttmark.shared.watermark.schemes.base import Parameter
from ttmark.shared.watermark.tails import corrected
from ttmark.shared.watermark.watermark import Watermark

Sharp = Literal["where_it_matters", "always", "never"]


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodEvidence:
    """What the likelihood ratio says of a text under some keys.

    Attributes:
        log10_p: of the best key, corrected for the number of keys.
        log10_e: of the mean of E over the keys. Without the mark it is at most 1 on average, so that 1 / E is
            a p-value by itself, and E may be multiplied with that of other texts.
        of_keys: log10 E of each key [keys].
        best: number of the key with the largest E.
        positions: where blocks may begin; `scored` of them have a (context, block) of their own.
        draws: of the importance sample; 0 where the p-value is 1 / E.
    """

    log10_p: float
    log10_e: float
    of_keys: Floats
    best: int
    positions: int
    scored: int
    draws: int


def ratios_of(watermark: Watermark) -> Ratios:
    """The tables of a scheme, its parameters and a block size, made once."""
    return _ratios(watermark.scheme, watermark.block_size, tuple(watermark.parameters.items()))


@lru_cache(maxsize=64)
def _ratios(scheme: str, block_size: int, parameters: tuple[tuple[str, Parameter], ...]) -> Ratios:
    return Ratios.of(Watermark(scheme, block_size, None, dict(parameters)))


def detect_likelihood(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    tokens: Sequence[int] | NDArray[np.int64],
    *,
    reading: Reading | None = None,
    rate: float = 1e-5,
    sharp: Sharp = "where_it_matters",
    secret: bytes = b"",
    spent: NDArray[np.bool_] | None = None,
    ratios: Ratios | None = None,
    passes: Passes | None = None,
) -> LikelihoodEvidence:
    """Tests a text for the mark of each key, whatever its phase and however it was edited.

    Args:
        reading: of a language model, if one read the text.
        rate: at which a verdict is asked for: where 1 / E may leave it open, the p-value is drawn for. The
            answer depends on it by the number of draws alone.
        secret: seeds the draws together with the text; no watermark key, at most 64 bytes.
        spent: positions whose blocks are to say nothing [positions].
        ratios: in place of those that ship.

    Raises:
        ValueError: a bad token, key, rate or secret, no key, or a reading of another number of tokens.
    """
    if not 0.0 < rate < 1.0:
        raise ValueError(f"a rate is between 0 and 1, not {rate}")
    if not prf_keys:
        raise ValueError("no key to test for")
    tokens = check_tokens(tokens)
    passes = passes or find_passes()
    rows = Rows.of(watermark, ratios or ratios_of(watermark), [tokens], [reading])
    chain = rows.chains[0] if spent is None else rows.chains[0].without(spent)
    needed = math.log10(len(prf_keys) / rate)  # of log10 E, for 1 / E to decide
    least = {"where_it_matters": gate(needed), "always": -math.inf, "never": math.inf}[sharp]
    of_keys, close = np.empty(len(prf_keys)), []
    for keys, cells in rows.cells_under_each(watermark, prf_keys):
        of_keys[keys] = log10_of_evidence(passes, chain, cells)
        close.append(cells[of_keys[keys] >= least])
    best = int(np.argmax(of_keys))
    near = np.concatenate(close)
    log10_p, draws = -float(of_keys[best]), 0
    if len(near) and chain.positions:
        tail = NullTail.draw(
            passes, chain, -needed, draw_seed(secret, watermark.null.name, chain, tokens.tobytes())
        )
        log10_p, draws = float(tail.log10_p(near).min()), tail.draws
    return LikelihoodEvidence(
        log10_p=corrected(log10_p, len(prf_keys)),
        log10_e=float(log10_mean(of_keys)),
        of_keys=of_keys,
        best=best,
        positions=chain.positions,
        scored=int(rows.scored.size),
        draws=draws,
    )


def log10_of_evidence(passes: Passes, chain: Chain, cells: Cells) -> Floats:
    """log10 E of rows of cells [rows, positions] -> [rows]: the mean over the priors of the text."""
    return log10_mean(log10_of(*passes.forward(chain, cells)))
