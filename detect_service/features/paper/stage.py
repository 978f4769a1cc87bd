"""The paper's statistics as methods of the service."""

from collections.abc import Callable, Sequence
from functools import cache, partial

from ttmark.detect_service.features.paper.detectors import aligned, direct, localized
from ttmark.detect_service.method import DocumentCost, Look, Method
from ttmark.detect_service.stage import VerdictStage
from ttmark.detect_service.verdict import Detector
from ttmark.shared.schemas.detection.detect import (
    AlignedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    DirectRequest,
    Document,
    LocalizedRequest,
)
from ttmark.shared.watermark.detectors import alignment
from ttmark.shared.watermark.detectors.alignment import BETA, DECOYS
from ttmark.shared.watermark.detectors.localized import needs_decoys
from ttmark.shared.watermark.nulls import BinomialNull, Null
from ttmark.shared.watermark.schemes.synthid import WeightedNull
from ttmark.shared.watermark.schemes.watermark import Watermark

# Of a token: its place in an alignment.
_ALIGN_TOKEN = 0.7
# Of a position under decoys: a step of a thousand alignments, searches for passages, or searches for windows,
# and each pass of drawing their scores over the words that they are drawn from.
_DECOY_ALIGNMENTS = 24.0
_DECOY_SCANS = 32.0
_DECOY_WINDOWS = 300.0
_DECOY_PASS = 5.0
# Of a document under one key version, beside exact tails.
_DOCUMENT = 100.0
_DOCUMENT_WINDOWS = 3_000.0
# Of an exact tail: as a series of terms, or of each point of a convolution.
_TAIL = 100.0
_TAIL_POINT = 0.2
_WINDOW_TAILS = 5
# Of a pool of keys: exact tails for each phase.
_POOL_TAILS = 3


def paper_cost(
    request: DetectionRequest, documents: Sequence[Document], watermark: Watermark, keys: int
) -> DocumentCost:
    """Of a version with a pool of so many keys: each hashes and aligns all tokens, decoys are drawn once."""
    size, null = watermark.block_size, watermark.null
    draw = _DECOY_PASS * _passes(null)

    def positions(tokens: int) -> int:
        return max(0, tokens - watermark.context_width - size + 1)

    def decoyed(
        document: float,
        of_decoy: float,
        needs: Callable[[int], bool],
        more: Callable[[int], float] = lambda _: 0.0,
    ) -> DocumentCost:
        """Of scores at all positions, which are held against decoys where they need some."""

        @cache
        def cost(tokens: int) -> float:
            decoys = of_decoy + draw if needs(positions(tokens)) else 0.0
            return document + tokens * (keys * (1.0 + _ALIGN_TOKEN) + decoys) + more(tokens)

        return lambda _, tokens: cost(tokens)

    match request:
        case DirectRequest():
            phases = [size if request.phase_of(document) == "any" else 1 for document in documents]
            tails = 1 if keys == 1 else _POOL_TAILS
            return lambda index, tokens: (
                phases[index] * (tails * _tail(null, tokens // size) + keys * tokens / size)
            )
        case AlignedRequest():
            return decoyed(
                _DOCUMENT, _DECOY_ALIGNMENTS, partial(alignment.needs_decoys, watermark, request.beta)
            )
        case LocalizedRequest(method="scan"):
            return decoyed(_DOCUMENT, _DECOY_SCANS, partial(needs_decoys, watermark, "scan"))
        case LocalizedRequest():
            needs = partial(needs_decoys, watermark, "waterseeker")

            def of_tails(tokens: int) -> float:
                tails = keys * _WINDOW_TAILS + (DECOYS if needs(positions(tokens)) else 0)
                return tails * _tail(null, tokens // size)

            return decoyed(keys * _DOCUMENT_WINDOWS, _DECOY_WINDOWS, needs, of_tails)
        case _:
            raise TypeError(f"no cost of {type(request).__name__}")


def _passes(null: Null) -> float:
    match null:
        case BinomialNull(trials, probability) if probability == 0.5 and trials <= 64:
            return 1.0
        case BinomialNull(trials, _):
            return 0.5 * (1 + trials)
        case WeightedNull(depth):
            return 1.3 * depth
        case _:
            return 6.0


def _tail(null: Null, blocks: int) -> float:
    return _TAIL_POINT * null.window(blocks) if isinstance(null, WeightedNull) else _TAIL


def _direct(request: DirectRequest, look: Look) -> Detector:
    return direct(request.phase_of(look.document), look.log10_limit)


def _aligned(request: AlignedRequest, look: Look) -> Detector:
    return aligned(request.beta, look.log10_limit)


def _localized(request: LocalizedRequest, look: Look) -> Detector:
    return localized(request.method, look.log10_limit)


METHODS: dict[type[DetectionRequest], Method] = {
    DirectRequest: Method(_direct, paper_cost, DetectionResult, DetectionResponse, lambda _: BETA),
    AlignedRequest: Method(_aligned, paper_cost, DetectionResult, DetectionResponse, lambda one: one.beta),
    LocalizedRequest: Method(_localized, paper_cost, DetectionResult, DetectionResponse, lambda _: BETA),
}

STAGE = VerdictStage("paper", METHODS)
