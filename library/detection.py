"""`ttmark.detect`: a key's mark in a text, as the detection service answers with evidence."""

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.question import Question
from ttmark.library.finding import Finding, FoundPassage
from ttmark.library.key import Key, Variant
from ttmark.library.tokenizer import TokenizerUnknown, tokenizers_for, tokenizers_of
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.service_errors import InternalError
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection.detect import CombinedRequest, Document
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.prf import UNKNOWN_TOKEN

Reader = Callable[[Sequence[int]], NDArray[np.float64]]
TokenIds = Sequence[int]
_CALLER = Principal("library", "library", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))
_ANY_LENGTH = 1 << 40


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

    A text is read in the detection service's three ways: as sent, without hidden characters and the line
    breaks of a page, and without typography. Each has a part of the rate; the best reading counts.

    Args:
        text: a text, its token ids, or a list of either, each of which is a question of its own.
        fpr: the false alarm rate, from 1e-100 to 0.1.
        reader: a `Model` that reads the text along, or a function from token ids to the natural
            log-probability of each token after those before it. It has the tokenizer of the model that
            wrote. With a wrong one fewer texts are found, and there are no more false alarms.
        model: whose tokenizer the text has: a `Model`, a name, a folder or a tokenizer of transformers.
            Left out: the models that the key remembers.

    Returns:
        A finding; of many texts a list.

    Raises:
        TypeError: the text is bytes.
        ValueError: `fpr` or a token id is out of range, or the reader speaks of another number of tokens.
        TokenizerUnknown: nobody said how the text is read.
    """
    if not 1e-100 <= fpr <= 0.1:
        raise ValueError(f"fpr is from 1e-100 to 0.1, not {fpr}")
    if isinstance(text, bytes | bytearray | memoryview):
        raise TypeError("a text is a str, or token ids; decode bytes first")
    text = _plain(text)
    given = [text] if _is_one(text) else [_plain(one) for one in text]
    tokenizers = tokenizers_of(key) if model is None else tokenizers_for(key, model)
    tried = [(tokenizers[name], variant) for name in tokenizers for variant in key.variants(name)]
    if not tried:
        raise TokenizerUnknown("the key marks no texts of a model with this tokenizer")
    read = getattr(reader, "log_probs", reader)
    found = [_find(one, tried, fpr, read, one_model=model is not None) for one in given]
    return found[0] if _is_one(text) else found


def _find(
    text: str | TokenIds,
    tried: Sequence[tuple[TextTokenizer, Variant]],
    fpr: float,
    read: Reader | None,
    *,
    one_model: bool = False,
) -> Finding:
    """The best of the tokenizers and versions, corrected for their number.

    Token ids beyond a tokenizer are not its; of `one_model`, transformers added them to its file.
    """
    if not isinstance(text, str):
        text = [int(token) for token in text]
        most = max(tokenizer.id_bound for tokenizer, _ in tried)
        if not 0 <= min(text, default=0) <= max(text, default=0) < most:
            raise ValueError(f"token ids are from 0 to {most - 1}")
        tried = [one for one in tried if one_model or max(text, default=0) < one[0].id_bound]
    document = Document(text=text) if isinstance(text, str) else Document(token_ids=text)
    keys = [_unlocked(number, variant) for number, (_, variant) in enumerate(tried)]
    backend = DetectionBackend(FixedKeys(keys), TokenizerSet(one for one, _ in tried), _ANY_LENGTH)
    own_reader = None if read is None else _OwnReader(read)
    question = Question(CombinedRequest(inputs=[document], fpr=fpr), _CALLER, own_reader=own_reader)
    try:
        (result,) = ask_here(question, means_of(backend)).results
    except _ReaderFailed as failed:
        raise failed.why from None
    if result.error is not None:
        raise RuntimeError(result.error.message)
    return _shown(result, fpr, document.text, was_read=own_reader is not None and own_reader.has_read)


def _unlocked(number: int, variant: Variant) -> UnlockedKey:
    profile, pool = variant
    version = UnlockedVersion(1, KeyState.PRIMARY, *pool)
    return UnlockedKey(f"key-{number:06}", _CALLER.tenant, profile, 1, (version,))


def _shown(result: Any, fpr: float, text: str | None, *, was_read: bool) -> Finding:
    """Of the service's result; where no passage stands out the whole text is one."""
    passages: tuple[FoundPassage, ...] = ()
    if result.verdict == "watermarked":
        passages = tuple(
            FoundPassage(one.start_token, one.end_token, one.start_char, one.end_char, one.log10_e_value)
            for one in result.segments
        )
        whole = FoundPassage(0, result.tokens, *((None, None) if text is None else (0, len(text))))
        passages = passages or (whole,)
    share = 0.0 if result.marked_share is None else result.marked_share.estimate
    figures = result.verdict, result.log10_p, result.log10_e, fpr, result.tokens
    return Finding(*figures, passages, share, was_read, text, result.reading)


class _ReaderFailed(InternalError):
    """The reader of whoever asks raised an error, which is theirs to see: no `not_examined`."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class _OwnReader:
    """Asks for each way of reading a text once.

    Attributes:
        has_read: whether it was asked.
    """

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._readings: dict[tuple[str, str], Reading | None] = {}
        self.has_read = False

    def __call__(self, reader: DocumentReader, key: UnlockedKey) -> Reading | None:
        name = reader.text, key.profile.tokenizer_fingerprint
        if name not in self._readings:
            tokens = reader.token_ids(key)
            known = np.where(tokens == UNKNOWN_TOKEN, 0, tokens).tolist()
            self._readings[name] = self._reading(known) if len(known) > 1 else None
        return self._readings[name]

    def _reading(self, tokens: Sequence[int]) -> Reading:
        self.has_read = True
        try:
            said = np.asarray(self._read(tokens), dtype=np.float64)
            if said.shape != (len(tokens),):
                raise ValueError(f"a reading of {said.size} tokens for {len(tokens)}")
            return Reading(said)
        except Exception as error:
            raise _ReaderFailed(error) from error


def _plain(ids: Any) -> Any:
    return ids.tolist() if hasattr(ids, "tolist") else ids


def _is_one(text: Any) -> bool:
    return isinstance(text, str) or (len(text) > 0 and isinstance(text[0], int | np.integer))
