"""Reasoning: what a model writes between marks before its answer, told apart from it piece by piece."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ttmark.gen_service.decoding.text_stream import overlap
from ttmark.gen_service.features.structured.formats.marks import NO_MARKS, Marks, pattern_of, without_marks
from ttmark.shared.tokenization import TextTokenizer

ReasoningRule = Literal["auto", "think", "none"]
_ANYTHING = r"(.|\n)*"


@dataclass(frozen=True, slots=True)
class Thoughts:
    """The marks of an answer.

    Attributes:
        opening: stands before reasoning; empty: the model does not reason.
        close: ends it.
        start: stands before the words, after reasoning or without.
        stop: stands behind the words.
    """

    opening: str = "<think>"
    close: str = "</think>"
    start: str = ""
    stop: str = ""


# Of Qwen 3 and most others, Gemma 4, Command A, Ministral 3, Apertus; not all write them of earlier answers.
_KNOWN = (
    ("<think>", "</think>"),
    ("<|channel>thought", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("[THINK]", "[/THINK]"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
)


def thoughts_of(template: str, learned: Thoughts | None, rule: ReasoningRule) -> Thoughts | None:
    """How a model reasons before it answers: by the rule, by what its template writes, or as that knows
    marks in use; None: in no way that shows."""
    around = (learned.start, learned.stop) if learned else ("", "")
    if rule == "none":
        return Thoughts("", "", *around) if learned else None
    if learned is not None and learned.opening:
        return learned
    found = [marks for marks in _KNOWN if marks[1] in template]
    if rule == "think" or found:
        return Thoughts(*(_KNOWN[0] if rule == "think" else found[0]), *around)
    return learned


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Where the answers to one prompt reason.

    Attributes:
        opened: whether the prompt ends in the first mark, so that answers begin inside.
        thoughts: the marks, encoded by `marks`.
    """

    opened: bool
    thoughts: Thoughts = field(default_factory=Thoughts)
    marks: Marks = field(default=NO_MARKS, compare=False)

    def rules(self, rest: str) -> list[str]:
        """A grammar in llguidance's dialect of Lark: what `rest` says, after reasoning if there is any."""
        thoughts, marks = self.thoughts, self.marks
        if not thoughts.opening:
            return [f"start: {rest}"]
        front = "" if self.opened else marks.begins(thoughts.opening)
        return [
            f"start: thought{'' if self.opened else '?'} {rest}",
            "thought: reasoning BLANKS?",
            *marks.until("reasoning", "REASONED", thoughts.close, front),
            f"REASONED: /{_ANYTHING}/",
            r"BLANKS: /\n{1,2}/",
        ]

    @property
    def no_words(self) -> str:
        """Taken from a terminal of words in such a grammar: words that begin as reasoning does."""
        opening = self.thoughts.opening
        text = without_marks(opening) == opening and opening
        return f" & ~/{pattern_of(opening)}{_ANYTHING}/" if text and not self.opened else ""

    @property
    def around_words(self) -> tuple[str, str]:
        """What may stand before and behind words in such a grammar."""
        start, stop = (self.marks.lark(mark) for mark in (self.thoughts.start, self.thoughts.stop))
        return f"({start})?" if start else "", f"({stop})?" if stop else ""


class ReasoningReader:
    """Splits one text into reasoning and answer, both without blanks around the marks.

    The pieces add up to the same however the text is cut. A text that does not begin with the first mark has
    no reasoning, unless the prompt has opened it; one without the last mark has nothing else. Marks around
    words are left out.
    """

    def __init__(self, reasoning: Reasoning) -> None:
        self._opened = reasoning.opened
        self._marks = reasoning.thoughts
        self._shown = reasoning.marks.shown
        self._place: Literal["start", "reasoning", "answer"] = "start"
        self._held = ""
        self._begun = False  # whether anything has been said where we are
        self.reasons = False
        self.ended = False

    def read(self, text: str, *, final: bool = False) -> tuple[str, str]:
        """Reasoning and answer that become certain with more text; `final` if there is no more."""
        self._held += text
        if self._place == "start" and not self._find_start(final):
            return "", ""
        reasoning = self._read_reasoning(final) if self._place == "reasoning" else ""
        answer = self._read_answer(final) if self._place == "answer" else ""
        return without_marks(reasoning), answer

    def count(self, token_ids: Sequence[int], tokenizer: TextTokenizer) -> int:
        """Tokens of a whole text that are reasoning, the marks included."""
        if not self.reasons:
            return 0
        if not self.ended:
            return len(token_ids)
        close = self._marks.close
        cuts = range(len(token_ids) + 1)
        last = [number for number, token in enumerate(token_ids, 1) if self._shown.get(token, "-") in close]
        if without_marks(close) != close and last:
            return last[0]
        return bisect_left(cuts, True, key=lambda cut: close in tokenizer.decode(token_ids[:cut]))

    def _find_start(self, final: bool) -> bool:
        seen, opening = self._held.lstrip(), self._marks.opening
        if not final and len(seen) < len(opening) and opening.startswith(seen):
            return False
        if opening and seen.startswith(opening):
            self._held = seen[len(opening) :]
            self.reasons = True
        self.reasons = self.reasons or self._opened
        self._place = "reasoning" if self.reasons else "answer"
        self._begun = not self.reasons  # a text without reasoning is left as it is
        return True

    def _read_reasoning(self, final: bool) -> str:
        close = self._marks.close
        if not self._begun:
            self._held = self._held.lstrip()
        at = self._held.find(close)
        if at >= 0:
            said, self._held = self._held[:at].rstrip(), self._held[at + len(close) :]
            self._place, self._begun, self.ended = "answer", False, True
            return said
        certain = len(self._held) if final else len(self._held) - overlap(self._held, close)
        said = self._held[:certain].rstrip()
        self._held = self._held[len(said) :]
        self._begun = self._begun or bool(said)
        return said

    def _read_answer(self, final: bool) -> str:
        around = [mark for mark in (self._marks.start, self._marks.stop) if mark]
        for mark in around:
            self._held = self._held.replace(mark, "")
        keep = 0 if final else max((overlap(self._held, mark) for mark in around), default=0)
        certain = len(self._held) - keep
        said, self._held = self._held[:certain], self._held[certain:]
        said = said if self._begun else said.lstrip()
        self._begun = self._begun or bool(said)
        return said
