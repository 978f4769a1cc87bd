"""`ttmark.detect`: a key's mark in a text, by the likelihood ratio of the detection service."""

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.verdict import Reach, without_finding
from ttmark.library.finding import Finding, FoundPassage
from ttmark.library.key import Key, Variant
from ttmark.library.tokenizer import TokenizerUnknown, text_tokenizer, tokenizers_of
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood
from ttmark.shared.watermark.likelihood.marked_passages import find_carried
from ttmark.shared.watermark.likelihood.reading import Reading

Reader = Callable[[Sequence[int]], NDArray[np.float64]]
TokenIds = Sequence[int]
_LOG10_2 = math.log10(2.0)


@overload
def detect(  # type: ignore[overload-overlap]  # a text is a sequence of texts too
    text: str | TokenIds, key: Key, *, fpr: float = ..., reader: Any = ..., model: Any = ...
) -> Finding: ...
@overload
def detect(
    text: Sequence[str] | Sequence[TokenIds],
    key: Key,
    *,
    fpr: float = ...,
    reader: Any = ...,
    model: Any = ...,
) -> list[Finding]: ...
def detect(text: Any, key: Key, *, fpr: float = 1e-5, reader: Any = None, model: Any = None) -> Any:
    """Whether a text carries the key's mark, how sure that is, and where.

    A text is read as it is: the detection service also looks behind invisible and look-alike characters,
    and joins broken lines.

    Args:
        text: a text, its token ids, or a list of either, each of which is a question of its own.
        fpr: the false alarm rate, above 0 and at most 0.1.
        reader: a `Model` that reads the text along, or a function from token ids to the natural
            log-probability of each token after those before it. It has the tokenizer of the model that wrote;
            one that is wrong finds less and raises no false alarms.
        model: whose tokenizer the text has: a `Model`, a name, a folder or a tokenizer of transformers. Left
            out: those that the key remembers.

    Returns:
        A finding; of many texts a list.

    Raises:
        TypeError: the text is bytes.
        ValueError: `fpr` or a token id is out of range, or the reader speaks of another number of tokens.
        TokenizerUnknown: nobody said how the text is read.
    """
    if not 0.0 < fpr <= 0.1:
        raise ValueError(f"fpr is above 0 and at most 0.1, not {fpr}")
    if isinstance(text, bytes | bytearray | memoryview):
        raise TypeError("a text is a str, or token ids; decode bytes first")
    text = _plain(text)
    given = [text] if _is_one(text) else [_plain(one) for one in text]
    if model is not None:
        chosen = text_tokenizer(model)
        tokenizers = {chosen.fingerprint: chosen}
    else:
        tokenizers = tokenizers_of(key)
    tried = [(tokenizers[name], variant) for name in tokenizers for variant in key.variants(name)]
    if not tried:
        raise TokenizerUnknown("the key marks no texts of a model with this tokenizer")
    read = getattr(reader, "log_probs", reader)
    found = [_find(one, tried, fpr, read) for one in given]
    return found[0] if _is_one(text) else found


def _find(
    text: str | TokenIds, tried: Sequence[tuple[TextTokenizer, Variant]], fpr: float, read: Reader | None
) -> Finding:
    """The best of the tokenizers and versions, corrected for their number; ids beyond one are not its."""
    if not isinstance(text, str):
        text = [int(token) for token in text]
        most = max((tokenizer.vocab_size for tokenizer, _ in tried), default=0)
        low, high = min(text, default=0), max(text, default=0)
        if low < 0 or high >= most:
            raise ValueError(f"token ids are from 0 to {most - 1}")
        tried = [one for one in tried if high < one[0].vocab_size]
    step, results, reaches = math.log10(len(tried)), [], []
    for tokenizer, (profile, pool) in tried:
        tokens = tokenizer.encode(text) if isinstance(text, str) else text
        reading = (
            None if read is None or len(tokens) < 2 else Reading(np.asarray(read(tokens), dtype=np.float64))
        )
        watermark = profile.watermark()
        evidence = detect_likelihood(watermark, pool, tokens, rate=fpr / len(tried), reading=reading)
        blocks = -(-evidence.positions // watermark.block_size)
        reaches.append(Reach(watermark, blocks, len(tried) * len(pool)))
        log10_p = min(0.0, evidence.log10_p + step)
        results.append(
            (log10_p, tokenizer, watermark, pool[evidence.best], tokens, reading, evidence.log10_e)
        )
    log10_e = float(np.logaddexp2.reduce([one[-1] / _LOG10_2 for one in results]) * _LOG10_2 - step)
    log10_p, tokenizer, watermark, prf_key, tokens, reading, _ = min(results, key=lambda one: one[0])
    shown = text if isinstance(text, str) else None
    if log10_p > math.log10(fpr):
        verdict = without_finding(reaches, fpr).verdict
        return Finding(verdict, log10_p, log10_e, fpr, len(tokens), read=reading is not None, text=shown)
    carried = find_carried(watermark, prf_key, tokens, reading=reading)
    offsets = tokenizer.encode_with_offsets(shown).offsets if shown is not None else None
    passages = tuple(
        FoundPassage(one.start, one.end)
        if offsets is None
        else FoundPassage(one.start, one.end, offsets[one.start][0], offsets[one.end - 1][1])
        for one in carried.passages
    )
    return Finding(
        "watermarked", log10_p, log10_e, fpr, len(tokens), passages, carried.share, reading is not None, shown
    )


def _plain(ids: Any) -> Any:
    """Arrays and tensors as lists."""
    return ids.tolist() if hasattr(ids, "tolist") else ids


def _is_one(text: Any) -> bool:
    return isinstance(text, str) or (len(text) > 0 and isinstance(text[0], int | np.integer))
