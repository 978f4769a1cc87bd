"""What looking for a foreign mark takes, in hashed blocks (`ttmark.detect_service.cost`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from ttmark.detect_service.foreign_detector import hows
from ttmark.shared.keys.unlocked import ForeignKey
from ttmark.shared.schemas.detection import DetectionRequest
from ttmark.shared.watermark.foreign import ForeignMark, Kgw, SynthIdText, VllmGumbel
from ttmark.shared.watermark.foreign.passages import window_count


@dataclass(frozen=True, slots=True)
class _Cost:
    """Of a token that is scored; of a p-value of the whole text, in all and for each token; of a window."""

    token: float
    whole: float
    whole_token: float
    window: float


def foreign_cost(request: DetectionRequest, key: ForeignKey, lengths: Sequence[int]) -> float:
    """The work of looking for the key's mark in documents of so many tokens."""
    ways = hows(request)
    total = 0.0
    for version in key.detectable:
        cost = _cost_of(version.mark)
        for tokens in lengths:
            total += cost.token * tokens
            if "direct" in ways:
                total += cost.whole + cost.whole_token * tokens
            if "localized" in ways:
                total += cost.window * window_count(tokens)
    return total


def _cost_of(mark: ForeignMark) -> _Cost:
    match mark:
        case Kgw():  # a list of green tokens for each seed
            return _Cost(10.0 + 0.034 * mark.green, 200.0, 110.0, 3_700.0)
        case SynthIdText():  # two transforms of a table, a convolution for each layer
            return _Cost(11.0, 4_000.0 + 300.0 * len(mark.keys), 5.0, 3_000.0 + 200.0 * len(mark.keys))
        case VllmGumbel() if mark.alpha is not None:
            return _Cost(11.0, 2_000.0, 25.0, 2_800.0)
        case _:
            return _Cost(7.0, 100.0, 0.3, 100.0)
