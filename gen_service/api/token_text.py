"""What single tokens look like as text, for log probabilities."""

from collections.abc import Sequence
from functools import cache

from ttmark.shared.tokenization import TextTokenizer

# JSON has no minus infinity; OpenAI's API writes this.
LEAST_LOGPROB = -9999.0
_REPLACEMENT = "\ufffd"


class TokenText:
    """Texts of a tokenizer's tokens; a space in front of a word is kept, special tokens show their names."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self.text = cache(self._text)

    def _text(self, token_id: int) -> str:
        alone = self._tokenizer.decode([token_id])
        # Decoders may drop the space at the start of a text, so the token is read as the second of two.
        second = self._tokenizer.decode([token_id, token_id])[len(alone) :]
        return second or alone or self._tokenizer.backend.id_to_token(token_id) or ""

    def utf8(self, token_id: int) -> list[int] | None:
        """The token's bytes; None for a part of a character."""
        text = self.text(token_id)
        return None if _REPLACEMENT in text else list(text.encode())


def finite(logprob: float) -> float:
    """A log probability as JSON can say it."""
    return max(logprob, LEAST_LOGPROB)


def text_offsets(texts: Sequence[str], start: int) -> list[int]:
    """Where each text begins when they follow each other from character `start`."""
    offsets = []
    for text in texts:
        offsets.append(start)
        start += len(text)
    return offsets
