"""A grammar as one more filter: what a completion may be, as -inf for every token that it may not go on with.

The mask of a branch depends on the completion, on the branch's path and on the model's logits alone, never on
a key. What remains is a model of its own, the constrained one; the filters, the joint distribution and the
watermark work on it as on any other. Of the tokens that spell what the grammar allows those are left that the
tokenizer would read back (docs/adr/0093).
"""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from llguidance import LLMatcher
from numpy.typing import NDArray

from ttmark.gen_service.features.structured.grammars.pieces import Bits, Place
from ttmark.gen_service.features.structured.grammars.spelling import Spelling


@dataclass(frozen=True, slots=True)
class GrammarSource:
    """A JSON schema, a regular expression, a grammar of our own in llguidance's dialect of Lark, or one of a
    stranger, in that or in GBNF.

    Attributes:
        free: whether a text may be free until it begins something that the grammar knows.
    """

    kind: Literal["json_schema", "regex", "lark", "grammar"]
    text: str
    free: bool = False

    @classmethod
    def of_schema(cls, schema: Mapping[str, Any]) -> "GrammarSource":
        return cls("json_schema", json.dumps(schema, ensure_ascii=False))

    @classmethod
    def of_choice(cls, texts: Sequence[str]) -> "GrammarSource":
        quoted = (json.dumps(text, ensure_ascii=False) for text in dict.fromkeys(texts))
        return cls("lark", f"start: {' | '.join(quoted)}\n")


_SECONDS_IN_ALL = 0.5
_SECONDS_PER_ROW = 2e-3  # several times what a row of an ordinary schema takes
_SECONDS_PER_TOKEN = 2e-8  # of the vocabulary
_LIKELY = 6.0  # below the likeliest logit: a token in 400
_FEW = 256  # tokens of a row, which are spellings of a few words then
_LOOKED_AT = 8  # tokens of a row at most after which one looks ahead


class GrammarFailed(Exception):
    """A completion cannot go on under its grammar; the text says why."""


class Grammar:
    """A compiled grammar, for the completions of one request.

    Args:
        matcher: at its start.
        ends: tokens that end a text; where the grammar is complete they may follow, and nowhere else.
        source: what it was compiled from; another process compiles it again.
        spelling: the tokenizer's own; None: any tokens that spell a text may stand for it.
    """

    def __init__(
        self,
        matcher: LLMatcher,
        ends: Collection[int],
        source: GrammarSource,
        spelling: Spelling | None = None,
    ) -> None:
        self.source = source
        self._spelling = spelling
        self._matcher = matcher
        self._ends = np.array(sorted(ends), dtype=np.int64)

    @property
    def free(self) -> bool:
        return self.source.free

    def ends_with(self, token: int) -> bool:
        return token in self._ends

    def begin(self) -> "GrammarState":
        return GrammarState(self._matcher.deep_copy(), self._ends, self._spelling)


@dataclass(frozen=True, slots=True)
class _Row:
    """What may come after a path.

    Attributes:
        allowed: a bit per token.
        complete: whether the text may end here.
        spelled: a bit per token: what the tokenizer's spelling leaves, whatever the grammar says; None:
            nothing that the grammar allows is spelled so.
    """

    allowed: Bits
    complete: bool
    spelled: Bits | None = None


class GrammarState:
    """How far one completion has come in its grammar; it belongs to the tokens, not to their cache."""

    def __init__(self, matcher: LLMatcher, ends: NDArray[np.int64], spelling: Spelling | None) -> None:
        self._matcher = matcher
        self._ends = ends
        self._spelling = spelling
        self._place = Place()
        self._seconds_left = _SECONDS_IN_ALL

    def advance(self, tokens: Sequence[int]) -> None:
        """Takes note of tokens that were appended; none of them ends the text.

        Raises:
            GrammarFailed: the grammar does not allow them.
        """
        if not self._matcher.consume_tokens(list(tokens)):
            raise GrammarFailed(f"the grammar does not allow these tokens: {self._matcher.get_error()}")
        if self._spelling is not None:
            self._place = self._spelling.along(self._place, tokens)

    def mask(
        self, logits: torch.Tensor, paths: Sequence[Sequence[int]], own: torch.Tensor | None = None
    ) -> None:
        """Sets `logits` [branches, vocab] to -inf in place where grammar or spelling forbid the token.

        Args:
            paths: branch i comes after the completion and `paths[i]`, which holds no end of text.
            own: [branches, vocab] the model's own logits, which get the same spelling and no grammar.

        Raises:
            GrammarFailed: a branch may not go on at all, or the grammar takes more CPU time than any schema
                that people write (every completion of the engine waits for it).
        """
        started = time.thread_time()
        self._seconds_left += (_SECONDS_PER_ROW + _SECONDS_PER_TOKEN * logits.shape[1]) * len(paths)
        rows: list[_Row] = []
        for path in paths:
            rows.append(self._after(path))
            if time.thread_time() - started > self._seconds_left:
                raise GrammarFailed("the grammar takes too long")
        forbidden = _forbidden([row.allowed for row in rows], logits.shape[1])  # [branches, vocab]
        # Said here: to the library an end of text that is an ordinary token is text too.
        forbidden[:, self._ends] = ~np.array([row.complete for row in rows])[:, None]
        if forbidden.all(axis=1).any():
            raise GrammarFailed("no token of the vocabulary may follow under the grammar")
        _mask(logits, forbidden)
        if own is not None and self._spelling is not None:
            every = np.full(-(-own.shape[1] // 8), 0xFF, dtype=np.uint8)
            spelled = [every if row.spelled is None else row.spelled for row in rows]
            misspelled = _forbidden(spelled, own.shape[1])
            misspelled[:, self._ends] = False
            _mask(own, misspelled)
        self._hand_on(rows, paths, [logits] if own is None else [logits, own], forbidden)
        self._seconds_left -= time.thread_time() - started

    def _after(self, path: Sequence[int]) -> _Row:
        with self._at(path) as matcher:
            return self._row(matcher, path)

    def _row(self, matcher: LLMatcher, path: Sequence[int]) -> _Row:
        """What may come after a path, where a matcher stands behind it."""
        allowed, complete = np.frombuffer(matcher.compute_bitmask(), np.uint8), matcher.is_accepting()
        if matcher.is_error():  # its mask would allow nothing but an end of text
            raise GrammarFailed(f"the grammar is too complex: {matcher.get_error()}")
        if self._spelling is None:
            return _Row(allowed, complete)
        began = time.perf_counter()
        spelled = self._spelling.after(self._spelling.along(self._place, path))
        self._seconds_left += time.perf_counter() - began  # the tokenizer's, whatever the schema
        size, both = min(len(allowed), len(spelled)), np.zeros_like(allowed)
        both[:size] = allowed[:size] & spelled[:size]
        return _Row(both, complete, spelled) if both.any() or complete else _Row(allowed, complete)

    def _hand_on(
        self,
        rows: Sequence[_Row],
        paths: Sequence[Sequence[int]],
        changed: Sequence[torch.Tensor],
        forbidden: NDArray[np.bool_],
    ) -> None:
        """Has tokens that what must follow would be merged with give their probability to others.

        They go to the longer tokens that begin with their text; where none may stand here, to the longest
        shorter one.

        Args:
            changed: [branches, vocab] each, in place; the first is masked, and says which tokens are likely.
            forbidden: [branches, vocab].
        """
        spelling = self._spelling
        if spelling is None:
            return
        for number, token in _worth_a_look(changed[0], forbidden, spelling.structural):
            if rows[number].spelled is None:
                continue
            heirs = _left(spelling.longer(token), forbidden[number])
            if not heirs.size:
                heirs = _left(spelling.shorter(token), forbidden[number])[:1]
            if heirs.size and self._is_dead(spelling, [*paths[number], token]):
                for each in changed:
                    _hand_on(each[number], token, torch.from_numpy(heirs.astype(np.int64)).to(each.device))

    def _is_dead(self, spelling: Spelling, path: Sequence[int]) -> bool:
        """Whether the tokenizer would merge what must follow a path with its last token."""
        with self._at(path) as matcher:
            forced = matcher.compute_ff_bytes()
            if forced and (spelled := spelling.begins(path[-1], forced)) is not None:
                return not spelled
            return self._row(matcher, path).spelled is None

    @contextmanager
    def _at(self, path: Sequence[int]) -> Iterator[LLMatcher]:
        if path:
            self._matcher.consume_tokens(list(path))
        try:
            yield self._matcher
        finally:
            if path:
                self._matcher.rollback(len(path))


def _left(tokens: NDArray[np.int32], forbidden: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Those of `tokens` that are not `forbidden` [vocab]."""
    return tokens[~forbidden[tokens]]


def _worth_a_look(
    logits: torch.Tensor, forbidden: NDArray[np.bool_], structural: NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Row and token: the likely ones where a row has few tokens, and the likely ends of structure elsewhere.

    Args:
        logits: [rows, vocab], masked.
    """
    peaks = logits.max(dim=1).values.tolist()
    for number, allowed in enumerate((~forbidden).sum(axis=1).tolist()):
        if allowed == 1:
            continue
        tokens = np.flatnonzero(~forbidden[number]) if allowed <= _FEW else structural
        values = logits[number, torch.from_numpy(tokens).to(logits.device)].float().cpu().numpy()
        order = np.argsort(-values, kind="stable")[:_LOOKED_AT]
        yield from (
            (number, token) for token in tokens[order[values[order] >= peaks[number] - _LIKELY]].tolist()
        )


def _hand_on(logits: torch.Tensor, token: int, heirs: torch.Tensor) -> None:
    """Makes `heirs` [n] likelier by what one token has, each by the same factor; `logits` [vocab]."""
    theirs = logits[heirs].float().logsumexp(0)
    if torch.isfinite(theirs):
        logits[heirs] += (torch.logaddexp(theirs, logits[token].float()) - theirs).to(logits.dtype)
        logits[token] = -torch.inf


def _mask(logits: torch.Tensor, forbidden: NDArray[np.bool_]) -> None:
    logits.masked_fill_(torch.from_numpy(forbidden).to(logits.device), -torch.inf)


def _forbidden(allowed: Sequence[Bits], vocab: int) -> NDArray[np.bool_]:
    """Bits of the allowed tokens, as [rows, vocab] of what is not; the padding of a vocabulary is not."""
    width = -(-vocab // 8)
    packed = np.full((len(allowed), width), 0xFF, dtype=np.uint8)
    for row, bits in zip(packed, allowed, strict=True):
        row[: len(bits)] = ~bits[:width]
    return np.unpackbits(packed, axis=1, count=vocab, bitorder="little").view(np.bool_)
