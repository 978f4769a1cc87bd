"""Special tokens that mean something to us, in the text of a completion.

Decoders leave special tokens out. Those that open and close calls and thoughts stand in the text as one
character each that no text has: a lone surrogate.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

_FIRST, _MOST = 0xDC80, 128
_MARK = re.compile("([\udc80-\udcff])")


def without_marks(text: str) -> str:
    return text if text.isascii() else _MARK.sub("", text)


def pattern_of(text: str) -> str:
    """A regular expression of a grammar that a text alone matches."""
    return re.escape(text).replace("\\\n", r"\n").replace("/", r"\/")


class Marks:
    """The special tokens that stand in some marks.

    Args:
        special: ids of special tokens by their texts.
        marks: the marks; of the tokens in them 128 at most are known.
        ends: tokens that end a text: a mark ends where one stands in it.
    """

    def __init__(self, special: Mapping[str, int], marks: Iterable[str], ends: Collection[int]) -> None:
        texts = list(marks)
        found = [text for text in special if text and any(text in mark for mark in texts)]
        self._signs = {text: chr(_FIRST + number) for number, text in enumerate(sorted(found)[:_MOST])}
        self._ids = {sign: special[text] for text, sign in self._signs.items()}
        self._ends = {sign for sign, token in self._ids.items() if token in ends}
        self.shown: Mapping[int, str] = {token: sign for sign, token in self._ids.items()}
        """What stands for each token in a text."""

    def encoded(self, mark: str) -> str:
        """The mark, with stand-ins for its special tokens, up to the end of the text."""
        mark = self._with_signs(mark)
        ends = [at for at, sign in enumerate(mark) if sign in self._ends]
        return mark[: ends[0]] if ends else mark

    def _with_signs(self, mark: str) -> str:
        for text in sorted(self._signs, key=len, reverse=True):
            mark = mark.replace(text, self._signs[text])
        return mark

    def ends_in(self, mark: str) -> bool:
        return not self._ends.isdisjoint(self._with_signs(mark))

    def lark(self, mark: str, written: Mapping[str, str] = MappingProxyType({})) -> str:
        """An encoded mark as a part of a grammar; blanks behind a special token may be left out.

        Args:
            written: patterns that single characters of it stand for.
        """
        parts: list[str] = []
        after = False
        for part in _MARK.split(mark):
            if part in self._ids:
                parts.append(f"<[{self._ids[part]}]>")
            elif part or after:
                text = part.removeprefix(" ") if after else part
                pattern = "".join(written.get(sign) or pattern_of(sign) for sign in text)
                plain = not after and written.keys().isdisjoint(text)
                parts.append(json.dumps(text, ensure_ascii=False) if plain else f"/{' ?' * after}{pattern}/")
            after = part in self._ids
        return " ".join(parts)

    def begins(self, mark: str) -> str:
        """A part of a grammar for an encoded mark that begins a text; blanks may stand before it."""
        text = _MARK.split(mark)[0]
        blanks = rf"/[ \n]{{0,2}}{pattern_of(text)}/" if text else r"/[ \n]{1,2}/?"
        return f"{blanks} {self.lark(mark[len(text) :])}"

    def until(self, name: str, body: str, mark: str, front: str = "", behind: str = "") -> list[str]:
        """Rules for a text up to an encoded mark, that included.

        Args:
            body: a terminal that may hold anything but the mark.
            front: what comes before the text.
            behind: what may come between the text and a special token.
        """
        cut = _MARK.search(mark)
        text, rest = (mark, "") if cut is None else (mark[: cut.start()], mark[cut.start() :])
        if cut is not None and not text.strip():
            return [f"{name}: {front} {body} {behind} {self.lark(rest)}"]
        until = f"{name}_text[lazy]: {body} {json.dumps(text, ensure_ascii=False)}"
        return [f"{name}: {front} {name}_text {self.lark(rest)}", until]


NO_MARKS = Marks({}, (), ())
