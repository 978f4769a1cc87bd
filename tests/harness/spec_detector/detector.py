"""From exported keys and the readings of a document to an answer."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.harness.spec_detector.scheme import Scheme
from tests.harness.spec_detector.scores import (
    aligned_p,
    aligned_score,
    best_passage,
    direct,
    position_scores,
    scan_p,
)

Mode = Literal["direct", "aligned", "scan"]


@dataclass(frozen=True)
class Answer:
    """What the service answers as well.

    Attributes:
        fired: keys of the version's pool that reach the rate by themselves.
        too_short: whether no profile could have reached it.
    """

    log10_p: float
    hypotheses: int
    key_id: str
    version: int
    pool_key: int
    fired: int
    too_short: bool


@dataclass(frozen=True)
class _Try:
    """One version on one reading: log10 p of each key, times phases x pool."""

    key_id: str
    version: int
    of_keys: list[float]
    count: int
    scheme: Scheme
    blocks: int


def detect(
    exports: Sequence[dict[str, Any]],
    readings: Sequence[Sequence[int]],
    mode: Mode,
    fpr: float,
    *,
    any_phase: bool = False,
) -> Answer:
    """The best of all versions of the exported keys on all readings.

    Args:
        exports: files of `ttmark keys export`, in the order of their key ids.
        readings: tokens of the document as it was sent and, where that is another text, normalised.
        any_phase: of `direct`.
    """
    tries = [
        list(_versions(exported, tokens, mode, any_phase=any_phase))
        for tokens in readings
        for exported in exports
    ]
    every = [one for some in tries for one in some]
    versions = len(every) // len(readings)
    others = math.log10(versions * len(readings))
    best = min(every, key=lambda one: min(one.of_keys))
    corrected = [min(0.0, p + others) for p in best.of_keys]
    return Answer(
        log10_p=min(corrected),
        hypotheses=sum(one.count for one in every),
        key_id=best.key_id,
        version=best.version,
        pool_key=corrected.index(min(corrected)),
        fired=sum(p <= math.log10(fpr) for p in corrected),
        too_short=all(_out_of_reach(one, math.log10(fpr) - others) for one in every),
    )


def _versions(
    exported: dict[str, Any], tokens: Sequence[int], mode: Mode, *, any_phase: bool
) -> Iterator[_Try]:
    scheme = Scheme(exported["profile"])
    for version in reversed(exported["versions"]):
        if "prf_keys" not in version:
            continue
        keys = [bytes.fromhex(key) for key in version["prf_keys"]]
        phases = range(scheme.size if any_phase and mode == "direct" else 1)
        blocks = max(0, -(-(len(tokens) - scheme.width - scheme.size + 1) // scheme.size))
        if mode == "direct":
            found = [[direct(scheme, key, tokens, phase) for phase in phases] for key in keys]
            blocks = max(scored for _, scored in found[0])
            alone = [min(log10_p for log10_p, _ in of_key) for of_key in found]
        else:
            null = (aligned_p if mode == "aligned" else scan_p)(scheme, keys[0], tokens)
            z = [position_scores(scheme, key, tokens) for key in keys]
            statistic = [
                aligned_score(one, scheme.size)
                if mode == "aligned"
                else best_passage(one, scheme.size, give_up=True)
                for one in z
            ]
            alone = [null(score) for score in statistic]
        count = len(phases) * len(keys)
        of_keys = [min(0.0, log10_p + math.log10(count)) for log10_p in alone]
        yield _Try(exported["key_id"], version["version"], of_keys, count, scheme, blocks)


def _out_of_reach(one: _Try, limit: float) -> bool:
    null = one.scheme.null
    best_total = one.blocks * null.best
    return one.blocks == 0 or null.tail(best_total, one.blocks) + math.log10(one.count) > limit
