"""What a request needs of the process: keys, tokenizers, limits."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import orjson

from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.shared.keys.held_keys import HeldKey
from ttmark.shared.tokenization import TextTokenizer


class TenantKeys(Protocol):
    """Where keys come from: a `KeyCache`, or keys that were read once."""

    def for_tenant(self, tenant: str) -> Sequence[HeldKey]:
        """The tenant's keys, ordered by id."""


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """A `TenantKeys` over the keys of one moment, for a run that must not see them change."""

    keys: Sequence[HeldKey]

    @classmethod
    def of(cls, keys: Iterable[HeldKey]) -> "FixedKeys":
        return cls(sorted(keys, key=lambda key: key.key_id))

    def for_tenant(self, tenant: str) -> list[HeldKey]:
        return [key for key in self.keys if key.tenant == tenant]

    def fingerprint(self, tenant: str) -> str:
        named = [
            [key.key_id, key.profile.profile_id, [version.version for version in key.detectable]]
            for key in self.for_tenant(tenant)
        ]
        return hashlib.sha256(orjson.dumps(named)).hexdigest()


class TokenizerSet(dict[str, TextTokenizer]):
    """Tokenizers by their fingerprints, which profiles name; by these, too, what metrics call `models`."""

    def __init__(self, tokenizers: Iterable[TextTokenizer], models: Mapping[str, str] | None = None) -> None:
        super().__init__((tokenizer.fingerprint, tokenizer) for tokenizer in tokenizers)
        self.models = models or {}

    @classmethod
    def load(cls, folders: Iterable[str | Path]) -> "TokenizerSet":
        """Reads `tokenizer.json` of every folder. Raises TokenizerMissing: one holds no usable tokenizer."""
        return cls(TextTokenizer.load(folder) for folder in folders)


@dataclass(frozen=True, slots=True)
class DetectionBackend:
    """Given by the composition root; nothing in it changes with a request.

    Attributes:
        keys: unwrapped keys; in the service a cache that is kept fresh in the background.
        max_request_blocks: most work of a request, in hashed blocks (`ttmark.detect_service.cost`); 0: any.
        draw_secret: seeds the draws of the likelihood ratio's p-values; no watermark key. Empty: the keys do.
        inserts: what tools put into texts, which is no words and counts for no limit: patterns, by characters
            that all of them hold.
    """

    keys: TenantKeys
    tokenizers: TokenizerSet
    max_document_tokens: int
    max_request_blocks: int = 0
    normalizer: TextNormalizer = field(default_factory=TextNormalizer)
    draw_secret: bytes = b""
    most_read_characters: int = 32_768
    inserts: Mapping[str, re.Pattern[str]] = field(default_factory=dict)

    def visible(self, text: str) -> str:
        """A text without inserts."""
        for characters, pattern in self.inserts.items():
            if characters in text:
                text = pattern.sub("", text)
        return text
