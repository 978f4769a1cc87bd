"""What a request needs of the process: keys, tokenizers, limits."""

from dataclasses import dataclass, field

from ttmark.detect_service.key_selection import TenantKeys
from ttmark.detect_service.normalization import TextNormalizer
from ttmark.detect_service.tokenizers import TokenizerSet
from ttmark.shared.labels import Label


@dataclass(frozen=True, slots=True)
class DetectionBackend:
    """Given by the composition root; nothing in it changes with a request.

    Attributes:
        keys: unwrapped keys; in the service a cache that is kept fresh in the background.
        tokenizers: by the fingerprint that profiles name.
        max_document_tokens: longest document that is looked at.
        max_request_blocks: most work of a request, in hashed blocks (`ttmark.detect_service.cost`); 0: any.
        normalizer: counts and undoes tricks with characters.
        draw_secret: seeds the draws of the likelihood ratio's p-values; no watermark key.
        most_read_characters: longest text that a language model is asked to read.
        label: what generated texts carry visibly, and is none of the model's words; None: they carry nothing.
    """

    keys: TenantKeys
    tokenizers: TokenizerSet
    max_document_tokens: int
    max_request_blocks: int = 0
    normalizer: TextNormalizer = field(default_factory=TextNormalizer)
    draw_secret: bytes = b""
    most_read_characters: int = 32_768
    label: Label | None = None
