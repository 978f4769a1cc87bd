"""Words and calls in the text of one answer, told apart piece by piece."""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from ttmark.gen_service.decoding.text_stream import overlap
from ttmark.gen_service.features.structured.formats.marks import without_marks
from ttmark.gen_service.features.structured.formats.tagged_values import fits, kinds, resolved, value_of
from ttmark.gen_service.features.structured.formats.tool_formats import (
    ARGUMENTS,
    ID,
    INDEX,
    NAME,
    Quotes,
    Tagged,
    ToolFormat,
)
from ttmark.shared.schemas.generation.tools import CallDelta, FunctionDelta

Steps = Generator[None, None, bool]
"""Reads on as far as the text goes, and then waits for more; whether it found what it looks for."""
_IN_NAMES = re.compile(r"[\w.-]*")
_SLOTS = {ID: re.compile(r'[^\s",<>|\[\]{}\udc80-\udcff]*'), INDEX: re.compile(r"\d*")}


class CallReader:
    """Splits one answer into words and calls. Pieces add up to the same however the text is cut.

    The grammar sees to it that a call that begins is written in its format; what is not goes to the words.

    Args:
        schemas: of the arguments, by the name of the function.
    """

    def __init__(self, form: ToolFormat, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._form, self._schemas = form, schemas
        self._seen = self._held = ""  # all text, and what of it is still to be looked at
        self._final = False
        self._words: list[str] = []
        self._told = False  # whether there were words
        self._cut = False  # whether the text ends inside a mark
        self._calls: dict[int, CallDelta] = {}
        self._begun = 0
        self._id: str | None = None
        self.whole = False
        self._steps = self._answer()

    def read(self, text: str, *, final: bool = False) -> tuple[str, list[CallDelta]]:
        """Words, and pieces of calls, at most one for each, that become certain with more text."""
        self._held += text
        self._seen += text
        self._final = final
        self._words, self._calls = [], {}
        next(self._steps, None)
        return without_marks("".join(self._words)), list(self._calls.values())

    def _answer(self) -> Steps:
        form = self._form
        while (yield from self._find_call()):
            start = self._taken
            while (yield from self._call()):
                self.whole = True
                if form.between is None or not (yield from self._take(form.between)):
                    break
                self.whole = False
            if not self.whole and not self._begun and not self._cut:
                self._tell(form.lead + self._seen[start : self._taken])
            yield from self._take(form.close)
            yield from self._take(form.coda)
            if self._begun:
                break
        yield from self._all_words()
        return True

    def _all_words(self) -> Steps:
        while True:
            self._tell(self._held)
            self._held = ""
            yield

    @property
    def _taken(self) -> int:
        return len(self._seen) - len(self._held)

    def _tell(self, words: str) -> None:
        self._words.append(words)
        self._told = self._told or bool(words.strip())

    def _find_call(self) -> Steps:
        form = self._form
        while True:
            if form.alone:
                seen = self._held.lstrip()
                if form.head and seen.startswith(form.head):
                    self._held = seen = seen[len(form.head) :].lstrip()
                if seen.startswith(form.trigger) and (yield from self._take(form.lead)):
                    return True
                if self._final or not form.trigger.startswith(seen):
                    yield from self._all_words()
            else:
                marks = [front + form.trigger for front in {form.gap, form.head, ""}]
                found = [at for mark in marks if (at := self._held.find(mark)) >= 0]
                if found:
                    at = self._held.find(form.trigger)
                    words, self._held = self._held[:at], self._held[at:]
                    if (yield from self._take(form.lead)):
                        front = words[: min(found)]
                        self._tell(front if self._told or front.strip() else "")
                        return True
                    cut = len(form.trigger)
                    self._tell(words + self._held[:cut])
                    self._held = self._held[cut:]
                    continue
                keep = 0 if self._final else max(overlap(self._held, mark) for mark in marks)
                certain = len(self._held) - keep
                # Blanks in front of a call are no words.
                if self._told or self._final or self._held[:certain].strip():
                    self._tell(self._held[:certain])
                    self._held = self._held[certain:]
            yield

    def _call(self) -> Steps:
        form, arguments, name = self._form, "", None
        for part in re.split(f"([{NAME}{ARGUMENTS}])", form.call):
            if part == NAME and name is not None:
                if not (yield from self._take(name)):
                    return False
            elif part == NAME:
                name = yield from self._name()
                if not self._held:
                    self._cut = True
                    return False
                self._open(name)
                self._say(arguments)
            elif part == ARGUMENTS:
                schema = self._schemas.get(name or "", {})
                if form.tagged is not None:
                    whole = yield from self._tagged(form.tagged, schema)
                elif name is not None:
                    whole = yield from self._json()
                else:
                    arguments = yield from self._value("", "")
                    whole = bool(arguments)
                if not whole:
                    self._cut = self._cut or self._final
                    return False
            elif part and not (yield from self._take(part)):
                return False
        return True

    def _open(self, name: str) -> None:
        index = self._begun
        self._begun += 1
        self._calls[index] = CallDelta(index=index, id=self._id, function=FunctionDelta(name=name))

    def _say(self, arguments: str) -> None:
        index = self._begun - 1
        if arguments:
            piece = self._calls.setdefault(index, CallDelta(index=index, function=FunctionDelta()))
            piece.function.arguments += arguments

    def _name(self) -> Generator[None, None, str]:
        while not self._final and (match := _IN_NAMES.match(self._held)) and match.end() == len(self._held):
            yield
        name = _IN_NAMES.findall(self._held)[0]
        self._held = self._held[len(name) :]
        return str(name)

    def _take(self, mark: str) -> Steps:
        """Takes a mark, if it comes next; more or fewer blanks in it make it no other."""
        at, place = 0, 0
        while place < len(mark):
            sign = mark[place]
            if at == len(self._held):
                if not self._final:
                    yield
                    continue
                if mark[place:].isspace():
                    break
                self._cut = True
                return False
            if sign in _SLOTS:
                found = _SLOTS[sign].match(self._held, at)
                if found and found.end() == len(self._held) and not self._final:
                    yield
                    continue
                self._id = found[0] if found and sign == ID else self._id
                at, place = found.end() if found else at, place + 1
            elif self._held[at] == sign:
                at, place = at + 1, place + 1
            elif self._held[at].isspace():
                at += 1
            elif sign.isspace():
                place += 1
            else:
                return False
        self._held = self._held[at:]
        return True

    def _json(self) -> Steps:
        value = _JsonValue()
        more = True
        while more:
            size, more = value.take(self._held)
            self._say(self._held[:size])
            self._held = self._held[size:]
            if more:
                if self._final:
                    return False
                yield
        return True

    def _tagged(self, tagged: Tagged, schema: Mapping[str, Any]) -> Steps:
        """Writes arguments that have marks of their own as JSON."""
        self._say("{")
        properties = schema.get("properties", {})
        first, after = True, ""
        while True:
            mark = tagged.key if first else after + tagged.between + tagged.key
            if first and not mark and not (yield from self._comes_key()):
                break
            if not (yield from self._take(mark)):
                if not (yield from self._take(after)):
                    return False
                break
            key = yield from self._key(tagged)
            if key is None:
                return False
            self._say(("" if first else ", ") + json.dumps(key, ensure_ascii=False) + ": ")
            group = yield from self._quotes(tagged)
            if group is None:
                return False
            after, first = group[1].after, False
            argument = resolved(properties.get(key, {}), schema)
            if not (yield from self._argument(tagged, group[0], after, argument)):
                return False
        self._say("}")
        return True

    def _comes_key(self) -> Steps:
        while not self._held and not self._final:
            yield
        return bool(re.match(r"\w", self._held))

    def _key(self, tagged: Tagged) -> Generator[None, None, str | None]:
        befores = {each.before for each in tagged.quotes.values()}
        while True:
            places = [at for before in befores if (at := self._held.find(before)) > 0]
            if places and (self._final or min(places) + max(map(len, befores)) <= len(self._held)):
                key, self._held = self._held[: min(places)], self._held[min(places) :]
                return key
            if self._final:
                return None
            yield

    def _quotes(self, tagged: Tagged) -> Generator[None, None, tuple[set[str], Quotes] | None]:
        """The types that a value may have by the marks before it, and its marks."""
        groups: dict[str, tuple[set[str], Quotes]] = {}
        for kind, each in tagged.quotes.items():
            groups.setdefault(each.before, (set(), each))[0].add(kind)
        for before in sorted(groups, key=len, reverse=True):
            if (yield from self._take(before)):
                return groups[before]
        return None

    def _argument(self, tagged: Tagged, group: set[str], after: str, schema: Any) -> Steps:
        if "string" not in group or not tagged.plain:
            text = yield from self._value(tagged.inner, after[:1] or self._ends(tagged))
            if not text:
                return False
            value, known = value_of(text, tagged.inner)
            self._say(json.dumps(value, ensure_ascii=False) if known else json.dumps(text))
            return True
        allowed = kinds(schema)
        is_text = group == {"string"} or allowed == {"string"}
        ends = [after] if after else self._followers(tagged)
        held, whole = "", False
        if is_text:
            self._say('"')
        while not whole:
            places = [at for end in ends if (at := self._held.find(end)) >= 0]
            whole = bool(places)
            keep = 0 if self._final else max(overlap(self._held, end) for end in ends)
            cut = min(places) if whole else len(self._held) - keep
            piece, self._held = without_marks(self._held[:cut]), self._held[cut:]
            if is_text:
                self._say(json.dumps(piece, ensure_ascii=False)[1:-1])
            else:
                held += piece
            if not whole:
                if self._final:
                    return False
                yield
        if is_text:
            self._say('"')
            return True
        value, known = value_of(held, tagged.inner)
        known = known and fits(value, schema)
        self._say(json.dumps(value if known else held, ensure_ascii=False))
        return True

    def _followers(self, tagged: Tagged) -> list[str]:
        form = self._form
        return [each for each in (tagged.between + tagged.key, form.close, form.between) if each] or ["\0"]

    def _ends(self, tagged: Tagged) -> str:
        """Signs of which one stands behind a value."""
        return "".join(each.lstrip()[:1] for each in self._followers(tagged))

    def _value(self, inner: str, ends: str) -> Generator[None, None, str]:
        """The text of one value that is no plain text; empty: it is not whole."""
        value = _Value(inner, ends)
        while True:
            end = value.end(self._held, final=self._final)
            if end is not None and (end < len(self._held) or self._final):
                text, self._held = self._held[:end], self._held[end:]
                return text.strip()
            if self._final:
                return ""
            yield


class _Value:
    """Finds the end of a value that is no plain text, in a text that grows; each sign is looked at once.

    Args:
        inner: the quotes of texts, beside those of JSON and Python.
        ends: signs of which one stands behind a value that is in no brackets.
    """

    def __init__(self, inner: str, ends: str) -> None:
        self._ends = ends
        self._quotes = list(dict.fromkeys(filter(None, (inner, '"', "'"))))
        self._inner = inner
        self._longest = max(map(len, self._quotes))
        self._at = self._depth = 0
        self._open = ""  # the quote that is to be closed
        self._found: int | None = None

    def end(self, text: str, *, final: bool) -> int | None:
        """Where the value ends; None: not in this text.

        Args:
            text: all of it, which may have grown.
            final: it will not grow.
        """
        stop = len(text) if final else len(text) - self._longest + 1  # before a quote that may be cut
        while self._found is None and self._at < stop:
            self._step(text)
        if self._found is None and final and not self._depth and not self._open:
            self._found = len(text)
        return self._found

    def _step(self, text: str) -> None:
        at, sign = self._at, text[self._at]
        if self._open:
            if text.startswith(self._open, at):
                self._at += len(self._open)
                self._open = ""
                self._found = None if self._depth else self._at
            else:
                self._at += 2 if sign == "\\" and self._open != self._inner else 1
            return
        quote = next((each for each in self._quotes if text.startswith(each, at)), None)
        self._at += len(quote or sign)
        if quote is not None:
            self._open = quote
        elif sign in "{[":
            self._depth += 1
        elif sign in "}]" and self._depth:
            self._depth -= 1
            self._found = None if self._depth else self._at
        elif not self._depth and (sign in self._ends or "\udc80" <= sign <= "\udcff"):
            self._found = at


class _JsonValue:
    """Finds the end of an object as it is written."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def take(self, text: str) -> tuple[int, bool]:
        """Characters of `text` that belong to it, and whether more will."""
        for at, sign in enumerate(text):
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = sign == "\\"
                self._quoted = sign != '"'
            elif sign == '"':
                self._quoted = True
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                if not self._depth:
                    return at + 1, False
        return len(text), True


def read_whole(
    form: ToolFormat, text: str, tools: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Any]] | None:
    """The calls of a text that is nothing but calls, as names and values; None: it is not that."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    reader = CallReader(form, schemas)
    words, pieces = reader.read(text, final=True)
    if words.strip() or not reader.whole:
        return None
    try:
        return [(str(each.function.name), json.loads(each.function.arguments)) for each in pieces]
    except ValueError:
        return None
