"""Who looks for a mark: the detection service, the other system's own detector, and our likelihood ratio."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ttmark.detect_service.ask import Means, Question, ask_here
from ttmark.detect_service.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.evaluation.language_model import CausalModel, log_likelihood
from ttmark.gen_service.api.prompts import text_ids
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.byte_reading import ByteReading, byte_ends, byte_spans
from ttmark.shared.keys.records import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection import CombinedRequest, Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.likelihood.reading import Reading

Reader = Callable[[str], ByteReading]
"""What a language model says of a text."""
Pool = Sequence[bytes]
"""The PRF keys of one key."""
_CALLER = Principal("evaluation", "evaluation", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))
_ANY_LENGTH = 1 << 20


def reader_of(folder: Path) -> Reader:
    """The causal language model in a folder, with its own tokenizer, which need not be the writer's.

    It is loaded when it first reads.
    """

    @lru_cache(maxsize=1)
    def loaded() -> tuple[CausalModel, TextTokenizer, list[int]]:
        tokenizer = TextTokenizer.load(folder)
        return CausalModel(str(folder)), tokenizer, text_ids("", tokenizer)

    @lru_cache(maxsize=4096)
    def read(text: str) -> ByteReading:
        model, tokenizer, before = loaded()
        found = tokenizer.encode_with_offsets(text)
        first = before or found.ids[:1]  # nothing is said of a token that nothing stands before
        rest = found.ids[0 if before else 1 :]
        said = np.zeros(len(found.ids))
        if rest:
            said[-len(rest) :] = log_likelihood(model, first, rest)
        return ByteReading.of_tokens(byte_ends(text, found.offsets), said)

    return read


class Service:
    """`POST /v1/detect`, as a caller with the scope detect:evidence asks it."""

    def __init__(self, watermark: Watermark, tokenizer: TextTokenizer) -> None:
        self._tokenizers = TokenizerSet([tokenizer])
        self._profile = {
            "scheme": watermark.scheme,
            "block_size": watermark.block_size,
            "context_width": watermark.context_width,
            "parameters": dict(watermark.parameters),
            "tokenizer_fingerprint": tokenizer.fingerprint,
        }

    def finds(
        self, texts: Sequence[str], pools: Sequence[Pool], fpr: float, read: Reader | None = None
    ) -> bool:
        """Whether it says *watermarked*.

        Args:
            texts: of several it is asked as of the messages of one conversation.
            pools: of the keys that are tried.
        """
        profile = Profile.model_validate({**self._profile, "pool": len(pools[0])})
        keys = [
            UnlockedKey(
                f"key-{number:06}",
                _CALLER.tenant,
                profile,
                1,
                (UnlockedVersion(1, KeyState.PRIMARY, *pool),),
            )
            for number, pool in enumerate(pools)
        ]
        means = Means(DetectionBackend(FixedKeys(keys), self._tokenizers, _ANY_LENGTH))
        request = CombinedRequest(
            inputs=[Document(text=text) for text in texts], fpr=fpr, conversation=len(texts) > 1
        )
        own = None if read is None else lambda reader, key: reader.reading(key, read(reader.text))
        (result,) = ask_here(Question(request, _CALLER, own_reader=own), means).results
        if result.error is not None:
            raise RuntimeError(result.error.message)
        return result.verdict == "watermarked"


def likelihood_finds(
    watermark: Watermark,
    tokenizer: TextTokenizer,
    text: str,
    prf_key: bytes,
    fpr: float,
    read: Reader | None = None,
) -> bool:
    """Whether our likelihood ratio, which models edits, finds a mark that is on its own kind of blocks."""
    found = tokenizer.encode_with_offsets(text)
    reading = None
    if read is not None:
        reading = Reading(read(text).log_probs(byte_spans(text, found.offsets)))
    test = LikelihoodTest(watermark, np.array(found.ids, dtype=np.int64), rate=fpr, reading=reading)
    return bool(test.under([prf_key]).log10_p <= np.log10(fpr))
