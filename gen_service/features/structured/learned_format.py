"""How a model writes calls and thoughts, learned from its chat template alone, and proved.

The template renders turns whose names, keys and values are known; what stands between them are the marks.
What was learned then has to read calls that it has not seen, as the template writes them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product, takewhile
from typing import Any

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate, Render
from ttmark.gen_service.features.structured.call_reader import read_whole
from ttmark.gen_service.features.structured.formats.tagged_values import kind_of
from ttmark.gen_service.features.structured.formats.tool_formats import (
    ARGUMENTS,
    ID,
    ID_STYLES,
    INDEX,
    NAME,
    OURS,
    Quotes,
    Tagged,
    ToolFormat,
)
from ttmark.gen_service.features.structured.reasoning import Thoughts

Call = tuple[str, Mapping[str, Any]]

_NAME, _NEXT, _KEY, _OTHER, _TEXT, _LAST = "zqname", "zqnext", "zqkey", "zqother", "zqtext", "zqlast"
_WORDS, _THOUGHT, _RESULT = "zqwords", "zqthought", "zqresult"
_ASKED = {"role": "user", "content": "zqasked?"}
_ONE, _TWO = [(_NAME, {_KEY: _TEXT})], [(_NAME, {_KEY: _TEXT}), (_NEXT, {_OTHER: _LAST})]
_VALUES: Mapping[str, Any] = {
    "integer": 7351,
    "boolean": True,
    "null": None,
    "array": [7351],
    "object": {"zqin": 7351},
}
_OBJECT = re.compile(rf'\{{\s*"{_KEY}"\s*:\s*"{_TEXT}"\s*\}}')
_OPEN, _IN_A_WORD = re.compile(r"<[^<>]*$|\[[A-Z_]+$"), re.compile(r"\w\w|\[[A-Z]")
_FIRST_MARK = re.compile(r"\s*(<[^<>]*>|\[[^\[\]]*\])")
_LAST_MARK = re.compile(r"(<[^<>]*>|\[[^\[\]]*\])\w*\s*$")


class NotLearned(Exception):
    """The template's calls cannot be read; the text says what was tried."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What a template says of the answers of its model.

    Attributes:
        tools: how it calls tools; None: it writes calls in a way that could not be learned.
        thoughts: None: the template tells nothing of them.
        takes_system: whether there can be a system's turn.
        refusal: why there is no `tools`, with what was tried.
    """

    tools: ToolFormat | None
    thoughts: Thoughts | None
    refusal: str = ""
    takes_system: bool = True


def learn(render: Render) -> Learned:
    """What the template says; it may fail on any of what it is given."""
    sketch = _Sketch(render)
    thoughts = sketch.thoughts()
    system = [{"role": role, "content": _WORDS} for role in ("system", "user")]
    takes_system = (sketch.told(system) or "").count(_WORDS) == len(system)
    try:
        form = sketch.tools()
        if thoughts is not None and thoughts.stop and form.lead.startswith(thoughts.stop):
            thoughts = replace(thoughts, stop="")  # it says that a call comes
        return Learned(form, thoughts, takes_system=takes_system)
    except NotLearned as error:
        return Learned(None, thoughts, str(error))


def learned_of(template: ChatTemplate) -> Learned:
    """How the model of a template calls tools and reasons; looked for once in a process."""
    return _learned(template.source, tuple(template.special_tokens.items()))


@lru_cache(64)
def _learned(source: str, special_tokens: tuple[tuple[str, str], ...]) -> Learned:
    return ChatTemplate(source, dict(special_tokens)).learn(learn)


def tool(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    properties = {key: {"type": kind_of(value), "description": "One."} for key, value in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "description": "Does it.", "parameters": parameters},
    }


class _Sketch:
    """Renders turns, and compares them."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._base = self.told([_ASKED]) or ""
        opened = self.told([_ASKED], opens=True) or ""
        self._header = opened[len(_common([opened, self._base])) :]
        self._form = ToolFormat("", "", "")
        self._with_results = False
        self._end = self._head = ""

    def told(
        self, messages: Sequence[Mapping[str, Any]], calls: Sequence[Call] = (), *, opens: bool = False
    ) -> str | None:
        tools = [tool(name, arguments) for name, arguments in dict(calls or _ONE).items()]
        try:
            return self._render(messages, tools, opens)
        except Exception:  # a template is foreign code
            return None

    def turn(self, calls: Sequence[Call] = (), words: str = "", thought: str = "") -> str | None:
        """What the template writes of an answer, up to what returns; None: it cannot."""
        form = self._form
        told: dict[str, Any] = {"role": "assistant", "content": words or (form.content if calls else "")}
        if thought:
            told |= dict.fromkeys(("reasoning_content", "thinking", "reasoning"), thought)
        messages = [_ASKED, told]
        if calls:
            ids = [
                ID_STYLES[form.id_style].format(name=name, number=n, drawn=f"zqid{n:05}" + "0" * 15)
                for n, (name, _) in enumerate(calls)
            ]
            functions = [
                {"name": name, "arguments": json.dumps(given) if form.text_arguments else given}
                for name, given in calls
            ]
            told["tool_calls"] = [
                {"id": id_, "type": "function", "function": function}
                for id_, function in zip(ids, functions, strict=True)
            ]
            if self._with_results:
                messages += [
                    {"role": "tool", "tool_call_id": id_, "name": name, "content": _RESULT}
                    for id_, (name, _) in zip(ids, calls, strict=True)
                ]
        if (full := self.told(messages, calls)) is None:
            return None
        base = self.told([_ASKED], calls) or ""
        turn = full[len(_common([full, base])) :].split(_RESULT)[0]
        if calls and form.id_style < 2:
            for id_ in ids:
                turn = turn.replace(id_, ID)
        return turn

    def thoughts(self) -> Thoughts | None:
        """How thoughts stand before words and calls."""
        said, thought = self.turn(words=_WORDS), self.turn(words=_WORDS, thought=_THOUGHT)
        header = self._header
        if said is None or _WORDS not in said:
            return None
        head = said[: said.index(_WORDS)]
        called = self.turn(_ONE, thought=_THOUGHT) or ""
        other = called.partition(_THOUGHT)[2].partition(_NAME)[0]
        start, stop = _as_mark(head[len(_common([head, header])) :].strip()), ""
        tail, shown, _ = (self.turn(_ONE, words=_WORDS) or "").partition(_WORDS)[2].partition(_NAME)
        if shown or thought:
            stop = self._stop(tail)
        if thought is not None and 0 <= thought.find(_THOUGHT) < thought.find(_WORDS):
            before, behind = thought.split(_WORDS, 1)[0].split(_THOUGHT, 1)
            close = (_common([behind, other]).strip() if other else "") or behind.strip()
            close = close.removesuffix(start) or close
            start = _as_mark(behind[behind.index(close) + len(close) :].strip())
        elif other:
            before = called.split(_THOUGHT, 1)[0]
            lead = _LAST_MARK.search((self.turn(_ONE) or "").partition(_NAME)[0])
            first = _FIRST_MARK.match(other)
            close = first[1] if first else ""
            if lead and lead[0] in other:
                close = other[: other.rindex(lead[0])].strip()
        else:
            before = close = ""
        known = [each for each in (head, header) if each]
        opening = before[len(_common([before, *known])) :].strip()
        if not opening and before:  # then the prompt ends in it
            found = _LAST_MARK.search(before)
            opening = found[0].strip() if found else ""
            if close not in header and not header.rstrip().endswith(opening or "\n"):
                opening = "".join(header.strip().splitlines()[-1:])
        if not (opening and close):
            opening = close = ""
        return Thoughts(opening, close, start, stop) if opening or start or stop else None

    def tools(self) -> ToolFormat:
        """The proved format.

        Raises:
            NotLearned: there is none.
        """
        plain, shown = self._render_or_none([]), self._render_or_none([tool(*_ONE[0])])
        shows = shown is not None and shown != plain and _NAME in shown
        one = self._find_a_call()
        if one is None:
            if shows:
                raise NotLearned("histories with calls, of which it shows none")
            return OURS
        form = self._learned(one, one.index(_NAME))
        form = replace(form, shows=shows)
        if not shows:
            example = self.turn([("the_function", {"an_argument": "its value"})]) or ""
            head = len(_common([example, self._header]))
            form = replace(form, example=(example[head:].strip(), " by tools' turns"))
        form = replace(form, call=form.call.replace(_NAME, NAME), head=self._head)
        self._prove(form)
        return form

    def _render_or_none(self, tools: Sequence[Mapping[str, Any]]) -> str | None:
        try:
            return self._render([_ASKED], tools, True)
        except Exception:  # a template is foreign code
            return None

    def _find_a_call(self) -> str | None:
        """What the template writes of a call, by the first way of telling it that it takes."""
        ways = product((False, True), (False, True), ("", None), range(len(ID_STYLES)))
        for self._with_results, as_text, content, style in ways:
            self._form = replace(self._form, text_arguments=as_text, content=content, id_style=style)
            one = self.turn(_ONE)
            if one and all(part in one for part in (_NAME, _KEY, _TEXT)):
                if as_text and '\\"' in one:
                    continue
                return one
        return None

    def _learned(self, one: str, name: int) -> ToolFormat:
        if any(sign in one.replace(ID, "") for sign in (INDEX, NAME, ARGUMENTS)):
            raise NotLearned("histories with calls, in which it writes control characters")
        whole = _OBJECT.search(one)
        if whole is None:
            return self._learned_tags(one, name)
        first, last = sorted(((name, name + len(_NAME)), whole.span()))
        call = NAME + one[first[1] : last[0]] + ARGUMENTS
        if first != (name, name + len(_NAME)):
            call = ARGUMENTS + one[first[1] : last[0]] + NAME
        lead, gap = self._lead(one[: first[0]], re.compile(_NAME) if first[0] == name else _OBJECT)
        form = replace(self._form, lead=lead, gap=gap, call=call, close=self._closed(one[last[1] :]))
        return self._with_more(form)

    def _lead(self, direct: str, first: re.Pattern[str]) -> tuple[str, str]:
        """What opens the first call, and what stands between words and that.

        Args:
            direct: what stands before the call where there are no words.
            first: finds where the call itself begins.
        """
        turn = self.turn(_ONE, words=_WORDS) or ""
        behind = turn.partition(_WORDS)[2]
        if found := first.search(behind):
            behind = behind[: found.start()]
            own = direct[len(_common([direct, self._header])) :]
            lead = _common_end(behind, own).lstrip()
            head = own[: len(own) - len(lead)].strip()
            self._head = _as_mark(head)
            stop = self._stop(behind)
            bare = lead.removeprefix(stop).lstrip()
            if not bare:
                raise NotLearned("JSON and tags, before which it has no mark")
            if bare != lead and replace(self._form, lead=bare).alone:
                return lead, ""  # it begins with what ends words
            return bare, _as_mark(behind[: len(behind) - len(bare)].strip())
        said = self.turn(words=_WORDS) or ""
        heads = [self._header, said.split(_WORDS)[0]]
        return direct[max(len(_common([direct, head])) for head in heads) :].lstrip(), ""

    def _stop(self, behind: str) -> str:
        """What ends words, whether an answer ends there or calls follow, as `behind` has them."""
        said = (self.turn(words=_WORDS) or "").partition(_WORDS)[2]
        return _as_mark(_common([behind, said]).strip())

    def _closed(self, tail: str) -> str:
        """What closes the last call: without what ends any turn."""
        end = (self.turn(words=_WORDS) or "").partition(_WORDS)[2].strip()
        close = tail[: tail.index(end)].rstrip() if end and end in tail else tail.rstrip()
        self._end = tail[len(close) :]
        return close

    def _with_more(self, form: ToolFormat) -> ToolFormat:
        """With what stands between two calls; numbers that count them are found."""
        both = self.turn(_TWO)
        if both is None or _LAST not in both or _TEXT not in both:
            return form
        places = re.compile(
            rf'{_NAME}|{_NEXT}|\{{\s*"{_KEY}"\s*:\s*"{_TEXT}"\s*\}}|\{{\s*"{_OTHER}"\s*:\s*"{_LAST}"\s*\}}'
        )
        spans = [match.span() for match in places.finditer(both)]
        if len(spans) != 4:
            return form
        (_, a), (b, c), (d, e), (_, f) = spans
        between, inner = both[c:d], (both[a:b], both[e : spans[3][0]])
        lead, between = _numbered(form.lead, between)
        middle = _numbered(*inner)[0]
        first, _, last = form.call[0], form.call[1:-1], form.call[-1]
        coda = self._closed(both[f:])
        coda = coda.removeprefix(form.close) if coda.startswith(form.close) else ""
        return replace(form, lead=lead, between=between, call=first + middle + last, coda=coda)

    def _learned_tags(self, one: str, name: int) -> ToolFormat:
        """The marks of arguments that are written one by one."""
        none, two = self.turn([(_NAME, {})]), self.turn([(_NAME, {_KEY: _TEXT, _OTHER: _LAST})])
        behind = name + len(_NAME)
        key = one.find(_KEY, behind)
        if (
            none is None
            or two is None
            or _NAME not in none
            or key < 0
            or not 0 <= two.find(_TEXT) < two.find(_OTHER)
        ):
            raise NotLearned("JSON arguments, and tags around each argument")
        before = one[behind:key]
        rest = none[none.index(_NAME) + len(_NAME) :]
        start = _common([before, rest])
        close = self._closed(rest[len(start) :])
        quotes = {"string": self._quoted(one, _TEXT)}
        for kind, value in _VALUES.items():
            shown = self.turn([(_NAME, {_KEY: value})])
            found = re.findall(_spellings(value), shown[shown.find(_KEY) :]) if shown else []
            if shown and found:
                quotes[kind] = self._quoted(shown, found[-1])
        ends = {kind: each.after for kind, each in quotes.items()}
        end = rest[len(start) :]
        if not all(after.endswith(end) for after in ends.values()):
            raise NotLearned("JSON arguments, and tags that close alike for each type")
        quotes = {
            kind: Quotes(each.before, each.after[: len(each.after) - len(end)])
            for kind, each in quotes.items()
        }
        text = quotes["string"].after
        joint = two[two.index(_TEXT) + len(_TEXT) : two.index(_OTHER)]
        each = before[len(start) :]
        if not joint.startswith(text) or not joint.endswith(each):
            raise NotLearned("JSON arguments, and tags that follow each other alike")
        between = joint[len(text) : len(joint) - len(each)]
        tagged = self._with_texts(Tagged(each, between, quotes, plain=True))
        lead, gap = self._lead(one[:name], re.compile(_NAME))
        form = replace(
            self._form, lead=lead, gap=gap, call=NAME + start + ARGUMENTS, close=close, tagged=tagged
        )
        both = self.turn(_TWO)
        if both is not None and _NEXT in both and _TEXT in both:
            told = both[both.index(_TEXT) + len(_TEXT) : both.index(_NEXT)]
            other = both[both.index(_NEXT) + len(_NEXT) : both.index(_OTHER)]
            if told.startswith(text):
                lead, told = _numbered(form.lead, told[len(text) :])
                start = _numbered(before, other.replace(_NEXT, _NAME))[0].removesuffix(each)
                form = replace(form, lead=lead, between=told, call=NAME + start + ARGUMENTS)
        return form

    def _quoted(self, turn: str, value: str) -> Quotes:
        """What stands before and behind the value of the one argument."""
        key = turn.index(_KEY) + len(_KEY)
        at = turn.rindex(value)
        return Quotes(turn[key:at], turn[at + len(value) :])

    def _with_texts(self, tagged: Tagged) -> Tagged:
        """Whether texts stand as they are, or quoted as JSON; the marks of texts inside of other values."""
        hard, inner, quote = 'a"b\\c', "", '"'
        shown = self.turn([(_NAME, {_KEY: hard})]) or ""
        plain = hard in shown
        quotes = dict(tagged.quotes)
        if not plain:
            text = quotes["string"]
            quote = text.before[-1:]
            quotes["string"] = Quotes(text.before.removesuffix('"').removesuffix("'"), text.after[1:])
        turned = self.turn([(_NAME, {_OTHER: _LAST, _KEY: _TEXT})]) or ""
        sorts = 0 <= turned.find(_KEY) < turned.find(_OTHER)
        listed = self.turn([(_NAME, {_KEY: [_TEXT]})]) or ""
        if _TEXT in listed and not re.search(f"[\"']{_TEXT}[\"']", listed):
            before, after = (re.escape(part) for part in ("[", "]"))
            if found := re.search(rf"{before}(\S+?){_TEXT}\1{after}", listed):
                inner = found[1]
        return replace(
            tagged,
            plain=plain,
            quotes=quotes,
            inner=inner,
            quote=quote,
            sorts=sorts,
            python_lists=f"'{_TEXT}'" in listed,
        )

    def _prove(self, form: ToolFormat) -> None:
        """Reads calls that were not seen.

        Raises:
            NotLearned: one is read wrong.
        """
        shown = 0
        for calls in _unseen(form):
            told = self.turn(calls)
            if told is None:
                continue
            shown += 1
            functions = [tool(name, given) for name, given in calls]
            read = read_whole(form, _within(told.removesuffix(self._end), form), functions)
            if read is None or [(name, _as_read(given)) for name, given in read] != [
                (n, _as_read(g)) for n, g in calls
            ]:
                if not _keeps(told, calls):
                    continue  # what the template itself leaves out
                kind = "JSON arguments" if form.tagged is None else "tags around each argument"
                raise NotLearned(f"{kind}; {json.dumps(calls[0], ensure_ascii=False)[:80]} is read wrong")
        if shown < 3:
            raise NotLearned("histories with calls, most of which it refuses")


def _as_mark(text: str) -> str:
    """The text if it is a mark, and none of thoughts."""
    return text if re.search(r"[<>\[\]]", text) and not re.search("think|reason", text, re.I) else ""


def _within(turn: str, form: ToolFormat) -> str:
    """From the lead of the calls on."""
    return turn[max(0, turn.find(re.split(f"[{ID}{INDEX}]", form.lead)[0])) :]


def _as_read(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _keeps(told: str, calls: Sequence[Call]) -> bool:
    texts = [value for _, given in calls for value in given.values() if isinstance(value, str)]
    spelled = (json.dumps(text)[1:-1] for text in texts)
    return all(text in told or other in told for text, other in zip(texts, spelled, strict=True))


def _unseen(form: ToolFormat) -> Iterator[Sequence[Call]]:
    """Calls that nothing was learned from, hostile ones among them."""
    yield [("lookup", {"word": "a b", "count": 3})]
    yield [("f", {"x": "5"})]
    yield [("f", {"x": "true", "y": "null"})]
    yield [("set_on", {"on": True, "off": False, "level": 0.5, "name": "ä€"})]
    yield [
        ("f_g", {"s": 'He said "no"\nand {left}, [so] \\', "n": [1, 2], "o": {"deep": {"er": ["x", "y z"]}}})
    ]
    yield [("empty", {})]
    yield [("f", {"e": ""})]
    yield [("f", {"s": " blanks \n"})]
    yield [("f", {"a": [], "o": {}})]
    yield [("f", {"a": None})]
    yield [("f", {"s": form.lead.replace(ID, ""), "t": "last"})]
    if form.tagged is None or not form.tagged.plain:
        yield [("f", {"s": form.close.replace(ID, ""), "t": "last"})]
    if form.between is not None:
        yield [("alpha", {"a": "1"}), ("alphabet", {"b": "2", "c": 4})]
        if not form.coda:  # else the template closes behind each further call
            yield [("f", {"n": 4}), ("g", {}), ("h", {"t": "x"})]


def _spellings(value: Any) -> str:
    """A pattern of how a value may be written."""
    if value is True or value is None:
        return "True|true" if value else "None|null|none"
    if isinstance(value, list):
        return r"\[\s*7351\s*\]"
    return r"\{[^{}]*zqin[^{}]*7351\s*\}" if isinstance(value, dict) else str(value)


def _same(*texts: str) -> int:
    """Characters with which all texts begin."""
    return sum(1 for _ in takewhile(lambda signs: len(set(signs)) == 1, zip(*texts, strict=False)))


def _common(texts: Sequence[str]) -> str:
    """The common beginning, up to a place where no mark is cut."""
    at = _same(*texts)
    while any(_is_inside(text, at) for text in texts):
        at -= 1
    return texts[0][:at]


def _common_end(text: str, other: str) -> str:
    """The common end of two texts, from a place on where no mark is cut."""
    at = len(text) - _same(text[::-1], other[::-1])
    while _is_inside(text, at):
        at += 1
    return text[at:]


def _is_inside(text: str, at: int) -> bool:
    return 0 < at < len(text) and bool(_OPEN.search(text[:at]) or _IN_A_WORD.match(text, at - 1))


def _numbered(first: str, second: str) -> tuple[str, str]:
    """Two texts, with the number in them, by which they count, marked as such."""
    last = re.compile(r"(\d+)(\D*)$")
    a, b = last.search(first), last.search(second)
    if a is None or b is None or a[2] != b[2] or int(b[1]) != int(a[1]) + 1:
        return first, second
    return first[: a.start()] + INDEX + a[2], second[: b.start()] + INDEX + b[2]
