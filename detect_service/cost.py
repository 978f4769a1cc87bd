"""What a request's work comes to, before it is done.

The unit is a hashed block: about a quarter of a microsecond of a core. What else takes time is counted in
blocks as well; `tests/integration/detect/cost_figures.py` measures how well that holds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.document_reader import DocumentReader
from ttmark.detect_service.foreign_marks import hows
from ttmark.detect_service.key_selection import KeySelection
from ttmark.shared.http.service_errors import TooMuchWork
from ttmark.shared.keys.records import ForeignKey
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.detectors import alignment, localized
from ttmark.shared.watermark.detectors.alignment import DECOYS
from ttmark.shared.watermark.foreign import ForeignMark, Kgw, SynthIdText, VllmGumbel
from ttmark.shared.watermark.foreign.foreign_mark import window_count
from ttmark.shared.watermark.nulls import BinomialNull, Null
from ttmark.shared.watermark.schemes.synthid import WeightedNull

# In blocks. Of a token: reading it from a text, or from a list; its place in an alignment.
_READ_TOKEN = 1.8
_TAKE_TOKEN = 0.3
_ALIGN_TOKEN = 0.7
# Of a position under decoys: a step of a thousand alignments, searches for passages, or searches for windows,
# and each pass of drawing their scores over the words that they are drawn from.
_DECOY_ALIGNMENTS = 24.0
_DECOY_SCANS = 32.0
_DECOY_WINDOWS = 300.0
_DECOY_PASS = 5.0
# Of a document under one key version, beside exact tails; of a call under one key version; of a request.
_REQUEST = 800.0
_DOCUMENT = 100.0
_DOCUMENT_WINDOWS = 3_000.0
_CALL = 1_200.0
# Of the likelihood ratio: a document, and of a token its rows, then its score and passes under each key. What
# p-values are drawn for costs no more: a charge must not tell what was drawn.
_LIKELIHOOD_DOCUMENT = 5_000.0
_LIKELIHOOD_TOKEN = 8.0
_LIKELIHOOD_KEY = 1.8
# Of an exact tail: as a series of terms, or of each point of a convolution.
_TAIL = 100.0
_TAIL_POINT = 0.2
_WINDOW_TAILS = 5
# Of a pool of keys: exact tails for each phase.
_POOL_TAILS = 3
# Before a text is read its tokens are not known. Most texts have fewer.
_BYTES_IN_A_TOKEN = 3

DocumentCost = Callable[[int, int], float]
"""Index of a document, its tokens -> blocks for one key version."""


def request_cost(
    request: DetectionRequest,
    documents: Sequence[Document],
    selection: KeySelection,
    tokens: Mapping[str, Sequence[int]],
) -> int:
    """The work of a request in hashed blocks.

    Args:
        documents: what is read; a document that is read in two ways comes twice.
        tokens: the length of each document in tokens, by the fingerprint of a tokenizer.
    """
    total = _REQUEST
    known: dict[str, float] = {}  # keys with one profile cost the same
    for key in selection.keys:
        profile = key.profile
        lengths = tokens[profile.tokenizer_fingerprint]
        if isinstance(key, ForeignKey):
            total += foreign_cost(request, key, lengths)
            continue
        if profile.profile_id not in known:
            of_version = _version_cost(request, documents, key.profile.watermark(), key.profile.pool)
            known[profile.profile_id] = sum(of_version(index, length) for index, length in enumerate(lengths))
        total += len(selection.numbers[key.key_id]) * (_CALL + known[profile.profile_id])
    for fingerprint in dict.fromkeys(key.profile.tokenizer_fingerprint for key in selection.keys):
        for document, length in zip(documents, tokens[fingerprint], strict=True):
            total += length * (_TAKE_TOKEN if document.text is None else _READ_TOKEN)
    return round(total)


def check_cost_of(
    request: DetectionRequest,
    readers: Sequence[DocumentReader],
    selection: KeySelection,
    backend: DetectionBackend,
) -> None:
    """Holds a request to the limit of work, once its documents are read; before, it was estimated.

    Raises:
        TooMuchWork: it is more.
    """
    limit = backend.max_request_blocks
    if limit:
        of_tokenizers = {key.profile.tokenizer_fingerprint: key for key in selection.keys}
        lengths = {name: [one.token_ids(key).size for one in readers] for name, key in of_tokenizers.items()}
        documents = [reader.document for reader in readers]
        check_cost(request_cost(request, documents, selection, lengths), limit)


def reading_cost(tokens: int) -> int:
    """The work of reading so many tokens from texts, in hashed blocks."""
    return round(tokens * _READ_TOKEN)


def estimated_tokens(document: Document, most: int) -> int:
    """About how many tokens a document has, at most `most`: those of a text from its bytes in UTF-8."""
    if document.text is None:
        return min(most, len(document.token_ids or ()))
    size = len(document.text) if document.text.isascii() else len(document.text.encode())
    return min(most, -(-size // _BYTES_IN_A_TOKEN))


def _version_cost(
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
            return decoyed(_DOCUMENT, _DECOY_SCANS, partial(localized.needs_decoys, watermark, "scan"))
        case LocalizedRequest():
            needs = partial(localized.needs_decoys, watermark, "waterseeker")

            def of_tails(tokens: int) -> float:
                tails = keys * _WINDOW_TAILS + (DECOYS if needs(positions(tokens)) else 0)
                return tails * _tail(null, tokens // size)

            return decoyed(keys * _DOCUMENT_WINDOWS, _DECOY_WINDOWS, needs, of_tails)
        case CombinedRequest():
            return lambda _, tokens: (
                _LIKELIHOOD_DOCUMENT + tokens * (_LIKELIHOOD_TOKEN + keys * _LIKELIHOOD_KEY)
            )
        case _:
            raise TypeError(f"no cost of {type(request).__name__}")


def _passes(null: Null) -> float:
    """How often `null.draw` goes over its words."""
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
    """An exact tail of the sum of so many blocks."""
    return _TAIL_POINT * null.window(blocks) if isinstance(null, WeightedNull) else _TAIL


def check_cost(blocks: int, most: int) -> None:
    """Holds a request's work to a limit; 0 is none.

    Raises:
        TooMuchWork: saying how much it is and how to ask for less.
    """
    if 0 < most < blocks:
        raise TooMuchWork(
            f"This request is estimated at {blocks} hashed blocks of work; the limit is {most}. Send fewer "
            "or shorter documents, name fewer keys, or use the default beta and method.",
            param="inputs",
        )


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
