"""Texts in which characters were lost: each U+FFFD is read as a token that nobody knows."""

from ttmark.shared.tokenization import EncodedText, TextTokenizer, TooManyTokens
from ttmark.shared.watermark.prf import UNKNOWN_TOKEN

_LOST = "\ufffd"


def read_ids(tokenizer: TextTokenizer, text: str, most: int | None = None) -> list[int]:
    """Token ids of `text` as detectors read it.

    Raises:
        TooManyTokens: it has more than `most`.
    """
    ids = tokenizer.encode(text, most)
    if _LOST in text:
        ids = read_with_offsets(tokenizer, text).ids
        if most is not None and len(ids) > most:
            raise TooManyTokens(len(ids))
    return ids


def read_with_offsets(tokenizer: TextTokenizer, text: str) -> EncodedText:
    """The same, with the character span of each token.

    Decoders write one U+FFFD for a byte, or a few, of no character. A tokenizer takes several of them
    together, or one apart, so that blocks behind them would begin at other tokens than they were made from.
    """
    encoded = tokenizer.encode_with_offsets(text)
    if _LOST not in text:
        return encoded
    ids: list[int] = []
    offsets: list[tuple[int, int]] = []
    for token, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
        if _LOST not in text[start:end]:
            ids.append(token)
            offsets.append((start, end))
            continue
        first = max(start, offsets[-1][1] if offsets else 0)
        ids += [UNKNOWN_TOKEN] * (end - first)
        offsets += [(place, place + 1) for place in range(first, end)]
    return EncodedText(ids, offsets)
