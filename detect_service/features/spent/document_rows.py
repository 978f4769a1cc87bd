"""The rows of a document that a detector may score: what is counted, and what is drawn once it is spent.

A row is what a score depends on: a context with its block, or with another system's token. Direct detection
scores some of them, alignment and passages every one, numbered where it repeats: all that they score is here.
"""

from collections.abc import Sequence

import numpy as np

from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.features.spent.spent_evidence import mixed
from ttmark.shared.keys.held_keys import ForeignKey, HeldKey, UnlockedKey
from ttmark.shared.limits.counting_filter import Names
from ttmark.shared.watermark.interruption import pause

_FACTOR = np.uint64(0xD6E8FEB86659FD93)


class DocumentRows:
    """Of all readings of one document, under all keys that are tried.

    Args:
        seed: 64 secret bits that name rows.

    Attributes:
        names: of the rows, each once [rows].
    """

    def __init__(self, readers: Sequence[DocumentReader], keys: Sequence[HeldKey], seed: int) -> None:
        self.readers = readers
        self._seed = seed
        self._of: dict[tuple[int, str, int], Names] = {}
        for key in keys:
            for index in range(len(readers)):
                for tokens in _row_tokens(key):
                    self._named(index, key, tokens)
        self.names: Names = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._of.values()]))

    def _named(self, index: int, key: HeldKey, row_tokens: int) -> Names:
        """Names of the rows that end at each token [L]; before the first token stands nothing."""
        name = (index, key.profile.tokenizer_fingerprint, row_tokens)
        if name not in self._of:
            pause()
            tokens = self.readers[index].token_ids(key)
            padded = np.concatenate([np.full(row_tokens - 1, -1), tokens]).astype(np.uint64)
            names = np.full(tokens.size, (self._seed ^ row_tokens) & (1 << 64) - 1, dtype=np.uint64)
            for offset in range(row_tokens):
                names = mixed(names * _FACTOR ^ padded[offset : offset + tokens.size])
            self._of[name] = names
        return self._of[name]

    def of_key(self, index: int, key: UnlockedKey) -> Names:
        """The rows that the key's detectors score in a reading, from token H on [L - H - r + 1]."""
        width = _row_tokens(key)[0]
        return self._named(index, key, width)[width - 1 :]

    def of_foreign_key(self, reader: DocumentReader, key: ForeignKey, row_tokens: int) -> Names:
        """The rows that a foreign mark scores, one for each token [L]."""
        return self._named(self.readers.index(reader), key, row_tokens)


def _row_tokens(key: HeldKey) -> list[int]:
    """Tokens in a row, for each kind of row that the key's detectors score."""
    if isinstance(key, ForeignKey):
        return list(dict.fromkeys(version.mark.row_tokens for version in key.detectable))
    return [key.profile.context_width + key.profile.block_size]
