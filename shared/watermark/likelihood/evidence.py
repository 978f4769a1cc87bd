"""How strongly a text carries the mark of some keys: E, and a p-value as sharp as the question needs."""

import hashlib
import hmac
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.block_scores import check_tokens
from ttmark.shared.watermark.likelihood.forward_backward import Passes, find_passes, log10_mean, log10_of
from ttmark.shared.watermark.likelihood.hidden_markov_model import MarkovChain, Ratios, Rows
from ttmark.shared.watermark.likelihood.importance_sampling import NullTail, gate
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.nulls import corrected
from ttmark.shared.watermark.schemes.base import Parameter
from ttmark.shared.watermark.schemes.watermark import Watermark
from ttmark.shared.watermark.score_distributions import Cells, Floats

Sharp = Literal["where_it_matters", "always", "never"]


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodEvidence:
    """What the likelihood ratio says of a text under some keys.

    Attributes:
        of_keys: log10 E under each key [keys].
        p_of_keys: log10 of the p-value under each key by itself [keys].
        positions: where blocks may begin; at `scored` of them stands no earlier (context, block) again, and
            no unknown token. A context that stands again with another block is scored, as likely unmarked.
        draws: of the importance sample; 0 where all p-values are 1 / E.
    """

    of_keys: Floats
    p_of_keys: Floats
    positions: int
    scored: int
    draws: int

    @property
    def best(self) -> int:
        """Number of the key with the smallest p-value, of equals the one with the largest E."""
        return int(np.lexsort((-self.of_keys, self.p_of_keys))[0])

    @property
    def log10_p(self) -> float:
        """Of the best key, corrected for the number of keys."""
        return corrected(float(self.p_of_keys.min()), self.p_of_keys.size)

    @property
    def log10_e(self) -> float:
        """Of the mean of E over the keys.

        Without the mark it is at most 1 on average, so that 1 / E is a p-value by itself, and E may be
        multiplied with that of other texts.
        """
        return float(log10_mean(self.of_keys))

    def of_each(self, size: int) -> "Iterator[tuple[LikelihoodEvidence, int, float, float]]":
        """The same of every `size` keys by themselves, with `best`, `log10_p` and `log10_e`."""
        of_keys, p_of_keys = self.of_keys.reshape(-1, size), self.p_of_keys.reshape(-1, size)
        log10_e = log10_mean(of_keys, axis=1).tolist()
        log10_p = np.minimum(0.0, p_of_keys.min(axis=1) + math.log10(size)).tolist()
        best = np.lexsort((-of_keys, p_of_keys))[:, 0].tolist()
        for at, values in enumerate(zip(best, log10_p, log10_e, strict=True)):
            own = LikelihoodEvidence(of_keys[at], p_of_keys[at], self.positions, self.scored, self.draws)
            yield own, *values


def ratios_of(watermark: Watermark) -> Ratios:
    """The tables of a scheme, its parameters and a block size, made once."""
    return _ratios(watermark.scheme, watermark.block_size, tuple(watermark.parameters.items()))


@lru_cache(maxsize=64)
def _ratios(scheme: str, block_size: int, parameters: tuple[tuple[str, Parameter], ...]) -> Ratios:
    return Ratios.of(Watermark(scheme, block_size, None, dict(parameters)))


class LikelihoodTest:
    """A text that is tested for the marks of keys; what needs no key is made once.

    Args:
        rate: of the verdict under each key. Where 1 / E may not decide the verdict, draws give the p-value.
            The answer depends on the rate only through the number of draws.
        reading: of a language model, if one read the text.
        sharp: for which keys draws give the p-value.
        secret: seeds the draws together with the text; no watermark key, at most 64 bytes. Empty: one that
            follows from the first keys that are asked about.
        silent: positions whose blocks are to say nothing [positions].
        ratios: in place of those that ship.

    Raises:
        ValueError: a bad token, rate or secret, or a reading of another number of tokens.
    """

    def __init__(
        self,
        watermark: Watermark,
        tokens: Sequence[int] | NDArray[np.int64],
        *,
        rate: float = 1e-5,
        reading: Reading | None = None,
        sharp: Sharp = "where_it_matters",
        secret: bytes = b"",
        silent: NDArray[np.bool_] | None = None,
        ratios: Ratios | None = None,
    ) -> None:
        if not 0.0 < rate < 1.0:
            raise ValueError(f"a rate is between 0 and 1, not {rate}")
        self._watermark = watermark
        self._tokens = check_tokens(tokens)
        self._passes = find_passes()
        self._rows = Rows.of(watermark, ratios or ratios_of(watermark), [self._tokens], [reading])
        chain = self._rows.chains[0]
        self._chain = chain if silent is None else chain.without(silent)
        self._needed = -math.log10(rate)  # of log10 E, for 1 / E to decide
        self._least = {"where_it_matters": gate(self._needed), "always": -math.inf, "never": math.inf}[sharp]
        self._secret = secret
        self._drawn: NullTail | None = None

    def _tail(self, prf_keys: Sequence[bytes]) -> NullTail:
        if self._drawn is None:
            secret = self._secret or secret_of(prf_keys)
            seed = draw_seed(secret, self._watermark.null.name, self._chain, self._tokens.tobytes())
            self._drawn = NullTail.draw(self._passes, self._chain, -self._needed, seed)
        return self._drawn

    def under(self, prf_keys: Sequence[bytes]) -> LikelihoodEvidence:
        """What the text says under each key, whatever its phase and however it was edited.

        Raises:
            ValueError: a bad key.
        """
        of_keys, p_of_keys, draws = np.empty(len(prf_keys)), np.empty(len(prf_keys)), 0
        for keys, cells in self._rows.cells_under_each(self._watermark, prf_keys):
            of_keys[keys] = found = log10_of_evidence(self._passes, self._chain, cells)
            own = np.minimum(0.0, -found)
            near = np.flatnonzero(found >= self._least)
            if near.size and self._chain.positions:
                tail = self._tail(prf_keys)
                own[near], draws = tail.log10_p(cells[near]), tail.draws
            p_of_keys[keys] = own
        return LikelihoodEvidence(
            of_keys, p_of_keys, self._chain.positions, int(self._rows.scored.size), draws
        )


def log10_of_evidence(passes: Passes, chain: MarkovChain, cells: Cells) -> Floats:
    """log10 E of rows of cells [rows, positions] -> [rows]: the mean over the priors of the text."""
    return log10_mean(log10_of(*passes.forward(chain, cells)))


def secret_of(prf_keys: Sequence[bytes]) -> bytes:
    """The secret for draws of whoever has no other: HKDF-SHA256 (RFC 5869) of the keys tried, no salt."""
    extracted = hmac.digest(bytes(32), b"".join(sorted(prf_keys)), "sha256")
    return hmac.digest(extracted, b"ttmark draws\x01", "sha256")


def draw_seed(secret: bytes, name: str, chain: MarkovChain, tokens: bytes) -> int:
    """64 bits from a text, its watermark's name and a secret of who detects, which is no watermark key.

    With a public seed anybody could look for texts with lucky draws, found at 1.2 to 1.8 times the rate.

    Raises:
        ValueError: the secret has more than 64 bytes.
    """
    digest = hashlib.blake2b(key=secret, digest_size=8)
    for part in (name.encode(), tokens, chain.kinds.tobytes(), chain.surprise.tobytes()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return int.from_bytes(digest.digest(), "little")
