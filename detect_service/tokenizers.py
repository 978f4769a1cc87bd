"""The tokenizers that this service can read text with, found by fingerprint."""

from collections.abc import Iterable
from pathlib import Path

from ttmark.shared.tokenization import TextTokenizer


class TokenizerSet:
    """Maps a profile's tokenizer fingerprint to its tokenizer."""

    def __init__(self, tokenizers: Iterable[TextTokenizer]) -> None:
        self._by_fingerprint = {tokenizer.fingerprint: tokenizer for tokenizer in tokenizers}

    @classmethod
    def load(cls, folders: Iterable[str | Path]) -> "TokenizerSet":
        """Reads `tokenizer.json` of every folder.

        Raises:
            TokenizerMissing: a folder holds no usable tokenizer.
        """
        return cls(TextTokenizer.load(folder) for folder in folders)

    def get(self, fingerprint: str) -> TextTokenizer | None:
        """The tokenizer of that fingerprint, or None where it is not installed."""
        return self._by_fingerprint.get(fingerprint)

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._by_fingerprint
