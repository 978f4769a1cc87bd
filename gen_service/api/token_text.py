"""What single tokens look like beside their log probabilities."""

from functools import cache
from typing import NamedTuple

from ttmark.shared.tokenization import TextTokenizer


class TokenText(NamedTuple):
    """A token by itself.

    Attributes:
        text: a space in front of a word is kept, a special token shows its name, and a part of a character
            its bytes, as in OpenAI's API: `bytes:\\xf0\\x9f`.
        raw: the bytes of that.
    """

    text: str
    raw: bytes


@cache
def token_text(tokenizer: TextTokenizer, token_id: int) -> TokenText:
    # Decoders may drop the space at the start of a text, so the token is read as the second of two.
    raw = tokenizer.bytes_of(token_id, after=token_id)
    raw = raw or (tokenizer.backend.id_to_token(token_id) or "").encode()
    try:
        return TokenText(raw.decode(), raw)
    except UnicodeDecodeError:
        return TokenText("bytes:" + "".join(f"\\x{byte:02x}" for byte in raw), raw)
