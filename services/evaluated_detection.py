"""The detection service as `ttmark eval results` asks it: in the process, by the same way as a request."""

from collections.abc import Sequence

from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.question import Question
from ttmark.evaluation.results.detectors import Pool, Reader
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection.detect import CombinedRequest, Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.schemes.watermark import Watermark

_CALLER = Principal("evaluation", "evaluation", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))
_ANY_LENGTH = 1 << 20


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
        means = means_of(DetectionBackend(FixedKeys(keys), self._tokenizers, _ANY_LENGTH))
        request = CombinedRequest(
            inputs=[Document(text=text) for text in texts], fpr=fpr, conversation=len(texts) > 1
        )
        own = None if read is None else lambda reader, key: reader.reading(key, read(reader.text))
        (result,) = ask_here(Question(request, _CALLER, own_reader=own), means).results
        if result.error is not None:
            raise RuntimeError(result.error.message)
        return result.verdict == "watermarked"
