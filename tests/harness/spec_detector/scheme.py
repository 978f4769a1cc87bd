"""Scores of blocks, and what they are without a watermark, in whole numbers and exact fractions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tests.harness.spec_detector.prf import words

TWO_64 = 1 << 64


@dataclass(frozen=True)
class Null:
    """The distribution of a block's score: log10 P(sum of blocks >= total); a score from a 64-bit word."""

    name: str
    mean: float
    deviation: float
    best: float
    tail: Callable[[float, int], float]
    draw: Callable[[int], float]


class Scheme:
    """The scheme of a profile; of `weighted` SynthID-Text the tail is left out, but for the best score's."""

    def __init__(self, profile: dict[str, Any]) -> None:
        self.name: str = profile["scheme"]
        self.size: int = profile["block_size"]
        self.width: int = profile["context_width"]
        self.parameters: dict[str, Any] = profile["parameters"]
        self.layers: int = self.parameters.get("depth", self.parameters.get("layers", 1))
        self.outputs = math.ceil(self.layers / 2) if self.name == "dipmark" else 1
        self.weights = [1] * self.layers
        if self.parameters.get("weighted") and self.layers > 1:
            self.weights = [10 * (self.layers - 1) - 9 * layer for layer in range(self.layers)]
        self.null = self._null()

    def score(self, key: bytes, context: tuple[int, ...], block: tuple[int, ...], repetition: int) -> float:
        """Of a block; `repetition` counts equal (context, block) before it."""
        if repetition:
            first = 2**31 + repetition * self.outputs
            calls = [words(key, *context, *block, first + call) for call in range(self.outputs)]
        else:
            more = [words(key, *context, *block, counter) for counter in range(1, self.outputs)]
            calls = [words(key, *context, *block), *more]
        of_block = [word for pair in calls for word in pair]
        if self.name == "synthid":
            return sum(weight * (of_block[0] >> layer & 1) for layer, weight in enumerate(self.weights))
        if self.name == "dipmark":
            return sum(word >= 2**63 for word in of_block[: self.layers])
        if self.name == "mcmark":
            pairs = zip(self._digits(of_block), self._digits([*words(key, *context)]), strict=True)
            return sum(channel == target for channel, target in pairs)
        return _exponential(of_block[0] >> 12)

    def standardised(self, score: float) -> float:
        return (score - self.null.mean) / self.null.deviation

    def _digits(self, of_message: list[int]) -> list[int]:
        channels = self.parameters["channels"]
        per_word = max(q for q in range(1, 44) if channels**q <= 2**43)
        return [
            (of_message[layer // per_word] >> 1) // channels ** (layer % per_word) % channels
            for layer in range(self.layers)
        ]

    def _null(self) -> Null:
        if self.name == "gumbel":
            return Null(
                "exponential", 1.0, 1.0, 52 * math.log(2), _gamma_tail, lambda u: _exponential(u >> 12)
            )
        if self.parameters.get("weighted"):
            return self._weighted_null()
        n = self.layers
        chance = Fraction(1, self.parameters.get("channels", 2))
        deviation = math.sqrt(n * float(chance) * (1 - float(chance)))

        def tail(total: float, blocks: int) -> float:
            return _binomial_tail(math.ceil(total - 1e-6), n * blocks, chance)

        below = [
            sum(math.comb(n, i) * chance**i * (1 - chance) ** (n - i) for i in range(hits + 1))
            for hits in range(n)
        ]
        limits = [math.floor(TWO_64 * share) for share in below]

        def draw(word: int) -> float:
            if chance == Fraction(1, 2):
                return (word & ((1 << n) - 1)).bit_count()
            return sum(word >= limit for limit in limits)

        name = f"binomial-{n}-{float(chance):.6g}"
        return Null(name, n * float(chance), deviation, n, tail, draw)

    def _weighted_null(self) -> Null:
        best, fair_bits = sum(self.weights), self.layers * math.log10(2)

        def tail(total: float, blocks: int) -> float:
            if total < blocks * best:
                raise NotImplementedError("tails of weighted SynthID-Text")
            return -fair_bits * blocks

        def draw(word: int) -> float:
            return sum(weight * (word >> layer & 1) for layer, weight in enumerate(self.weights))

        deviation = math.sqrt(sum(weight**2 for weight in self.weights)) / 2
        return Null(f"weighted-{self.layers}", best / 2, deviation, best, tail, draw)


def _exponential(cell: int) -> float:
    return -math.log1p(-cell / 2**52)


def _binomial_tail(hits: int, trials: int, chance: Fraction) -> float:
    a, b = chance.numerator, chance.denominator
    ways = sum(math.comb(trials, i) * a**i * (b - a) ** (trials - i) for i in range(max(hits, 0), trials + 1))
    return math.log10(ways) - trials * math.log10(b) if ways else -math.inf


def _gamma_tail(total: float, blocks: int) -> float:
    """Fewer than `blocks` events of a Poisson process of mean `total`."""
    with localcontext() as context:
        context.prec = 60
        x, term, events = Decimal(total), Decimal(1), Decimal(0)
        for i in range(blocks):
            events += term
            term = term * x / (i + 1)
        return float((events.ln() - x) / Decimal(10).ln())
