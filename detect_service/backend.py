"""What a request needs of the process: keys, tokenizers, limits."""

from dataclasses import dataclass

from detect_service.tokenizers import TokenizerSet
from shared.keys import KeyCache


@dataclass(frozen=True, slots=True)
class DetectionBackend:
    """Given by the composition root; nothing in it changes with a request.

    Attributes:
        keys: unwrapped keys, kept fresh in the background.
        tokenizers: by the fingerprint that profiles name.
        max_document_tokens: longest document that is looked at.
    """

    keys: KeyCache
    tokenizers: TokenizerSet
    max_document_tokens: int
