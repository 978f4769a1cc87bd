"""What single tokens look like beside their log probabilities."""

from functools import cache
from typing import NamedTuple

from ttmark.gen_service.decoding.pieces import BYTES
from ttmark.shared.tokenization import TextTokenizer


class TokenText(NamedTuple):
    """A token by itself.

    Attributes:
        text: a space in front of a word is kept, a special token shows its name, and a part of a character
            its bytes, as in OpenAI's API: `bytes:\\\\xf0\\\\x9f`.
        raw: the bytes of that.
        adds: the bytes that a text gets from it: a special token adds none.
    """

    text: str
    raw: bytes
    adds: bytes


@cache
def token_text(tokenizer: TextTokenizer, token_id: int) -> TokenText:
    """What a token reads as."""
    alone = tokenizer.decode([token_id])
    name = tokenizer.backend.id_to_token(token_id) or ""
    # Decoders may drop the space at the start of a text, so the token is read as the second of two.
    text = tokenizer.decode([token_id, token_id])[len(alone) :] or alone
    raw = _bytes(name) if "\ufffd" in text else text.encode()
    try:
        return TokenText(raw.decode() or name, raw or name.encode(), raw)
    except UnicodeDecodeError:
        return TokenText("bytes:" + "".join(f"\\x{byte:02x}" for byte in raw), raw, raw)


def _bytes(name: str) -> bytes:
    """Of a token that is one byte, or has letters for bytes, as its vocabulary writes it."""
    if len(name) == 6 and name.startswith("<0x"):
        return bytes.fromhex(name[3:5])
    return bytes(map(BYTES.__getitem__, name)) if BYTES.keys() >= {*name} else name.encode()
