"""Reasoning: what a model writes between tags before its answer, told apart from it piece by piece."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ttmark.gen_service.decoding.sequence import overlap
from ttmark.shared.tokenization import TextTokenizer

ReasoningRule = Literal["auto", "think", "none"]
_ANYTHING = r"(.|\n)*"


START, END = "<think>", "</think>"
"""What stands before reasoning, and what ends it."""


def reasons(template: str, rule: ReasoningRule) -> bool:
    """Whether a model reasons before it answers: by the rule, or as its chat template knows the tags."""
    return END in template if rule == "auto" else rule == "think"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Where the answers to one prompt reason.

    Attributes:
        opened: whether the prompt ends in the first tag, so that answers begin inside.
    """

    opened: bool

    def rules(self, rest: str) -> list[str]:
        """A grammar in llguidance's dialect of Lark: what `rest` says, after reasoning if there is any."""
        start = "" if self.opened else f"{_regex(START)} "
        return [
            f"start: thought{'' if self.opened else '?'} {rest}",
            "thought: reasoning BLANKS?",
            f"reasoning[lazy]: {start}/{_ANYTHING}/ {_regex(END)}",
            r"BLANKS: /\n{1,2}/",
        ]

    @property
    def no_words(self) -> str:
        """Taken from a terminal of words in such a grammar: words that begin as reasoning does."""
        return "" if self.opened else f" & ~({_regex(START)} /{_ANYTHING}/)"


class ReasoningReader:
    """Splits one text into reasoning and answer, both without blanks around the tags.

    The pieces add up to the same however the text is cut. A text that does not begin with the first tag has
    no reasoning, unless the prompt has opened it; one without the last tag has nothing else.
    """

    def __init__(self, reasoning: Reasoning) -> None:
        self._opened = reasoning.opened
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
        return reasoning, self._read_answer() if self._place == "answer" else ""

    def count(self, token_ids: Sequence[int], tokenizer: TextTokenizer) -> int:
        """Tokens of a whole text that are reasoning, the tags included."""
        if not self.reasons:
            return 0
        if not self.ended:
            return len(token_ids)
        cuts = range(len(token_ids) + 1)
        return bisect_left(cuts, True, key=lambda cut: END in tokenizer.decode(token_ids[:cut]))

    def _find_start(self, final: bool) -> bool:
        seen = self._held.lstrip()
        if not final and len(seen) < len(START) and START.startswith(seen):
            return False
        if seen.startswith(START):
            self._held = seen[len(START) :]
            self.reasons = True
        self.reasons = self.reasons or self._opened
        self._place = "reasoning" if self.reasons else "answer"
        self._begun = not self.reasons  # a text without reasoning is left as it is
        return True

    def _read_reasoning(self, final: bool) -> str:
        if not self._begun:
            self._held = self._held.lstrip()
        at = self._held.find(END)
        if at >= 0:
            said, self._held = self._held[:at].rstrip(), self._held[at + len(END) :]
            self._place, self._begun, self.ended = "answer", False, True
            return said
        certain = len(self._held) if final else len(self._held) - overlap(self._held, END)
        said = self._held[:certain].rstrip()
        self._held = self._held[len(said) :]
        self._begun = self._begun or bool(said)
        return said

    def _read_answer(self) -> str:
        said, self._held = self._held if self._begun else self._held.lstrip(), ""
        self._begun = self._begun or bool(said)
        return said


def _regex(text: str) -> str:
    return "/" + re.escape(text).replace("/", r"\/") + "/"
