"""What a request's work comes to, before it is done.

The unit is a hashed block: about a quarter of a microsecond of a core. What else takes time is counted in
blocks as well; `docs/results/detection.md` says how well that held.
"""

from collections.abc import Callable, Sequence

from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.method import Method
from ttmark.shared.http.service_errors import TooMuchWork
from ttmark.shared.keys.held_keys import ForeignKey, HeldKey
from ttmark.shared.schemas.detection.detect import DetectionRequest

# In blocks. Of a token: reading it from a text, or from a list.
_READ_TOKEN = 1.8
_TAKE_TOKEN = 0.3
# Of a request; of a call under one key version.
_REQUEST = 800.0
_CALL = 1_200.0
# Before a text is read its tokens are not known. Most texts have fewer.
_BYTES_IN_A_TOKEN = 3


def request_cost(
    request: DetectionRequest,
    method: Method,
    readers: Sequence[DocumentReader],
    selection: KeySelection,
    length: Callable[[DocumentReader, HeldKey], int],
) -> int:
    """The work of a request in hashed blocks. `length`: how many tokens a reader reads under a key."""
    total = _REQUEST
    documents = [reader.document for reader in readers]
    of_tokenizers = {key.profile.tokenizer_fingerprint: key for key in selection.keys}
    tokens = {name: [length(one, key) for one in readers] for name, key in of_tokenizers.items()}
    known: dict[str, float] = {}  # keys with one profile cost the same
    for key in selection.keys:
        profile = key.profile
        lengths = tokens[profile.tokenizer_fingerprint]
        if isinstance(key, ForeignKey):
            total += selection.other_keys.cost(request, key, lengths) if selection.other_keys else 0.0
            continue
        if profile.profile_id not in known:
            of_version = method.cost(request, documents, key.profile.watermark(), key.profile.pool)
            known[profile.profile_id] = sum(of_version(index, length) for index, length in enumerate(lengths))
        total += len(selection.numbers[key.key_id]) * (_CALL + known[profile.profile_id])
    for lengths in tokens.values():
        for document, size in zip(documents, lengths, strict=True):
            total += size * (_TAKE_TOKEN if document.text is None else _READ_TOKEN)
    return round(total)


def reading_cost(tokens: int) -> int:
    """The work of reading so many tokens from texts, in hashed blocks."""
    return round(tokens * _READ_TOKEN)


def estimated_tokens(reader: DocumentReader, most: int) -> int:
    """About how many tokens a document has, at most `most`: those of a text from its bytes in UTF-8."""
    if reader.document.text is None:
        return min(most, len(reader.document.token_ids or ()))
    return min(most, -(-len(reader.text.encode()) // _BYTES_IN_A_TOKEN))


def check_cost(blocks: int, most: int) -> None:
    """Holds a request's work to a limit; 0 is none. Raises TooMuchWork: how much it is, and what to do."""
    if 0 < most < blocks:
        raise TooMuchWork(
            f"This request is estimated at {blocks} hashed blocks of work; the limit is {most}. Send fewer "
            "or shorter documents, name fewer keys, or use the default beta and method.",
            param="inputs",
        )
