"""What a request needs of the process: keys, tokenizers, limits."""

from dataclasses import dataclass, field

from detect_service.key_selection import KeySource
from detect_service.normalization import TextNormalizer
from detect_service.tokenizers import TokenizerSet


@dataclass(frozen=True, slots=True)
class DetectionBackend:
    """Given by the composition root; nothing in it changes with a request.

    Attributes:
        keys: unwrapped keys; in the service a cache that is kept fresh in the background.
        tokenizers: by the fingerprint that profiles name.
        max_document_tokens: longest document that is looked at.
        normalizer: counts and undoes tricks with characters.
    """

    keys: KeySource
    tokenizers: TokenizerSet
    max_document_tokens: int
    normalizer: TextNormalizer = field(default_factory=TextNormalizer)
