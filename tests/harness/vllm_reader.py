"""A second reader of vLLM's Gumbel mark with one key: plain, slow, and with nothing of this project."""

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

M = 0xFFFFFFFF


class Found(NamedTuple):
    """Of each scored token its place, the 24 bits of its draw and its score; of the text the p-value."""

    places: list[int]
    draws: list[int]
    scores: list[float]
    log10_p: float


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    (a, b, c, d), (low, high) = counter, key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> 32) ^ b ^ low, right & M, (left >> 32) ^ d ^ high, left & M
        low, high = (low + 0x9E3779B9) & M, (high + 0xBB67AE85) & M
    return a, b, c, d


def draw(key: int, context: Sequence[int], token: int) -> int:
    low, high = key & M, key >> 32
    state = (0x574D4358, len(context), 0, 0)
    for start in range(0, len(context), 4):
        four = [word & M for word in context[start : start + 4]]
        four += [M - place for place in range(len(four), 4)]
        state = philox([s ^ w for s, w in zip(state, four, strict=True)], (low ^ start, high))
    words = philox((token >> 2, *state[:3]), (low ^ state[3], high ^ 0x574D544B))
    return words[token & 3] >> 8


def log10_tail(total: float, count: int) -> float:
    if total <= 0:
        return 0.0
    terms = [k * math.log(total) - math.lgamma(k + 1) for k in range(count)]
    most = max(terms)
    return min(0.0, (most - total + math.log(math.fsum(math.exp(t - most) for t in terms))) / math.log(10))


def detect(key: int, width: int, tokens: list[int]) -> Found:
    """Of tokens with equal contexts the first alone is scored; before the text stand tokens -1."""
    places, draws, scores = list[int](), list[int](), list[float]()
    seen: set[tuple[int, ...]] = set()
    for place, token in enumerate(tokens):
        context = tuple(([-1] * width + tokens)[place : place + width])
        if context not in seen:
            seen.add(context)
            places.append(place)
            draws.append(draw(key, context, token))
            (u,) = struct.unpack("f", struct.pack("f", (draws[-1] + 1) / (2**24 + 1)))
            scores.append(-math.log1p(-u))
    total = math.fsum(scores) - len(scores) * math.log1p(2**-24)
    return Found(places, draws, scores, log10_tail(total, len(scores)) if scores else 0.0)
