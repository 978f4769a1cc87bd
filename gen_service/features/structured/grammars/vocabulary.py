"""What grammars need of a tokenizer, once for all models that have it."""

import hashlib
import json
from collections.abc import Collection
from copy import copy
from threading import Lock
from weakref import WeakValueDictionary

from llguidance import LLTokenizer, TokenizerWrapper
from tokenizers import Tokenizer
from tokenizers.normalizers import Prepend, Sequence

from ttmark.gen_service.features.structured.grammars.spelling import Spelling
from ttmark.shared.byte_tokens import BYTES
from ttmark.shared.tokenization import TextTokenizer


class TokenizerUnsuitable(Exception):
    """The bytes of the model's tokens cannot be told, or it has no token that ends a text."""


class Vocabulary:
    """A tokenizer's tokens as the library sees them, and its spelling.

    Attributes:
        library: its view; it asks the tokenizer itself, since a copy would take more than all the rest.
        spelling: None where the tokenizer does not merge pairs.
    """

    def __init__(self, backend: Tokenizer, ends: Collection[int]) -> None:
        tokens = _Tokens(backend, min(ends))
        self.spelling = Spelling.of(backend)
        wrapper = TokenizerWrapper(tokens)
        self.library = LLTokenizer(wrapper, eos_token=sorted(ends))
        tokens.tokens = wrapper.tokens = []  # the library has its own

    @classmethod
    def of(cls, tokenizer: TextTokenizer, ends: Collection[int]) -> "Vocabulary":
        """The one there is, or a new one: seconds for 200,000 tokens.

        Raises:
            TokenizerUnsuitable: there is none.
        """
        if not ends:
            raise TokenizerUnsuitable("the model has no token that ends a text")
        key = hashlib.sha256(tokenizer.backend.__getstate__()).digest(), frozenset(ends)
        with _LOCK:
            found = _SHARED.get(key)
            if found is None:
                found = _SHARED[key] = cls(tokenizer.backend, ends)
            return found


_SHARED: WeakValueDictionary[tuple[bytes, frozenset[int]], Vocabulary] = WeakValueDictionary()
_LOCK = Lock()


class _Tokens:
    """A tokenizer in the library's terms.

    Raises:
        TokenizerUnsuitable: its decoder does not say which bytes its tokens are.
    """

    bos_token_id = None

    def __init__(self, backend: Tokenizer, end: int) -> None:
        self.eos_token_id = end
        normalizer = backend.normalizer
        normalizers = [*normalizer] if isinstance(normalizer, Sequence) else []  # type: ignore[misc]
        kept = [each for each in normalizers if not isinstance(each, Prepend)]
        if kept != normalizers:  # what is forced goes on in a text
            backend = copy(backend)
            backend.normalizer = Sequence(kept)
        self._backend = backend
        decoder = json.loads(backend.decoder.__getstate__()) if backend.decoder else {}
        parts = {part["type"]: part for part in decoder.get("decoders", [decoder] if decoder else [])}
        self._in_bytes = "ByteFallback" not in parts
        if self._in_bytes and "ByteLevel" not in parts:
            raise TokenizerUnsuitable("the model's tokenizer does not say which bytes its tokens are")
        self._blank = parts.get("Replace", {}).get("pattern", {}).get("String", " ")
        added = backend.get_added_tokens_decoder()
        names = {token: each.content for token, each in added.items()}
        # Whatever looks like a mark is one.
        self.special_token_ids = [
            token
            for token, each in added.items()
            if each.special or (names[token].startswith("<") and names[token].endswith(">"))
        ]
        special = {*self.special_token_ids}
        size = max(backend.get_vocab(with_added_tokens=True).values()) + 1
        self.tokens = [
            (names[token].encode() if token in special else self._bytes(backend.id_to_token(token) or ""))
            or names.get(token, "").encode()
            for token in range(size)
        ]

    def __call__(self, text: str) -> list[int]:
        return self._backend.encode(text, add_special_tokens=False).ids

    def _bytes(self, name: str) -> bytes:
        """Of an ordinary token; none where they cannot be told."""
        if self._in_bytes:
            return bytes(map(BYTES.__getitem__, name)) if BYTES.keys() >= {*name} else b""
        if len(name) == 6 and name.startswith("<0x"):
            return bytes.fromhex(name[3:5])
        return name.replace(self._blank, " ").encode()
