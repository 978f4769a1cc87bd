"""A grammar as one more filter: what a completion may be, as -inf for every token that it may not go on with.

The mask of a branch depends on the completion and on the branch's path alone. What remains is a model of its
own, the constrained one; the filters, the joint distribution and the watermark work on it as on any other.
"""

import time
from collections.abc import Collection, Sequence

import numpy as np
import torch
from llguidance import LLMatcher
from numpy.typing import NDArray

_SECONDS_IN_ALL = 0.5
_SECONDS_PER_ROW = 1e-3  # twenty times what a row of an ordinary schema takes


class GrammarFailed(Exception):
    """A completion cannot go on under its grammar; the text says why."""


class Grammar:
    """A compiled grammar, for the completions of one request.

    Args:
        matcher: at its start.
        ends: tokens that end a text; where the grammar is complete they may follow, and nowhere else.
        schema: what it was compiled from, as JSON; another process compiles it again.
    """

    def __init__(self, matcher: LLMatcher, ends: Collection[int], schema: str) -> None:
        self.schema = schema
        self._matcher = matcher
        self._ends = np.array(sorted(ends), dtype=np.int64)

    def ends_with(self, token: int) -> bool:
        """Whether a token ends the text."""
        return token in self._ends

    def begin(self) -> "GrammarState":
        """The state of a completion that has no tokens yet."""
        return GrammarState(self._matcher.deep_copy(), self._ends)


class GrammarState:
    """How far one completion has come in its grammar; it belongs to the tokens, not to their cache."""

    def __init__(self, matcher: LLMatcher, ends: NDArray[np.int64]) -> None:
        self._matcher = matcher
        self._ends = ends
        self._seconds_left = _SECONDS_IN_ALL

    def advance(self, tokens: Sequence[int]) -> None:
        """Takes note of tokens that were appended; none of them ends the text.

        Raises:
            GrammarFailed: the grammar does not allow them.
        """
        if not self._matcher.consume_tokens(list(tokens)):
            raise GrammarFailed(f"the grammar does not allow these tokens: {self._matcher.get_error()}")

    def mask(self, logits: torch.Tensor, paths: Sequence[Sequence[int]]) -> None:
        """Sets `logits` [branches, vocab] to -inf in place where the grammar forbids the token.

        Args:
            paths: branch i comes after the completion and `paths[i]`, which holds no end of text.

        Raises:
            GrammarFailed: a branch may not go on at all, or the grammar takes more CPU time than any schema
                that people write (every completion of the engine waits for it).
        """
        started = time.thread_time()
        self._seconds_left += _SECONDS_PER_ROW * len(paths)
        allowed: list[bytes] = []  # a bit per token
        complete: list[bool] = []
        for path in paths:
            bits, ended = self._after(path)
            allowed.append(bits)
            complete.append(ended)
            if time.thread_time() - started > self._seconds_left:
                raise GrammarFailed("the grammar takes too long")
        self._seconds_left -= time.thread_time() - started
        forbidden = _forbidden(allowed, logits.shape[1])  # [branches, vocab]
        # Said here: to the library an end of text that is an ordinary token is text too.
        forbidden[:, self._ends] = ~np.array(complete)[:, None]
        if forbidden.all(axis=1).any():
            raise GrammarFailed("no token of the vocabulary may follow under the grammar")
        logits.masked_fill_(torch.from_numpy(forbidden).to(logits.device), -torch.inf)

    def _after(self, path: Sequence[int]) -> tuple[bytes, bool]:
        """What may follow a path, a bit per token, and whether the text may end there."""
        matcher = self._matcher
        if path:
            matcher.consume_tokens(list(path))
        bits, complete = matcher.compute_bitmask(), matcher.is_accepting()
        if path:
            matcher.rollback(len(path))
        if matcher.is_error():  # its mask would allow nothing but an end of text
            raise GrammarFailed(f"the grammar is too complex: {matcher.get_error()}")
        return bits, complete


def _forbidden(allowed: Sequence[bytes], vocab: int) -> NDArray[np.bool_]:
    """Bits of the allowed tokens, as [rows, vocab] of what is not; the padding of a vocabulary is not."""
    packed = ~np.frombuffer(b"".join(allowed), dtype=np.uint8).reshape(len(allowed), -1)
    missing = max(0, -(-vocab // 8) - packed.shape[1])
    packed = np.pad(packed, ((0, 0), (0, missing)), constant_values=0xFF)
    return np.unpackbits(packed, axis=1, count=vocab, bitorder="little").view(np.bool_)
