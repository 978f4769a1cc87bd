"""Bad words as the token sequences that spell them."""

from collections.abc import Iterator, Sequence

from ttmark.shared.tokenization import TextTokenizer


def bad_word_ids(words: Sequence[str], tokenizer: TextTokenizer) -> tuple[tuple[int, ...], ...]:
    """What a completion may not have, each once: as vLLM takes them, at the beginning of a text and after a
    blank. Other tokens that happen to spell a word are not among them.
    """
    return tuple(dict.fromkeys(ids for word in words for ids in _spellings(word.lstrip(" "), tokenizer)))


def _spellings(word: str, tokenizer: TextTokenizer) -> Iterator[tuple[int, ...]]:
    alone, after_blank = (
        tuple(tokenizer.backend.encode(text, add_special_tokens=False).ids) for text in (word, f" {word}")
    )
    if alone:
        yield alone
    # With as many tokens the blank is part of the first; with more it is one of its own, which is no part.
    if alone and len(after_blank) == len(alone) and after_blank[0] != alone[0]:
        yield after_blank
