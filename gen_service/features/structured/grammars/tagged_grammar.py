"""The grammar of arguments that a model writes one by one, each between marks of its own."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ttmark.gen_service.features.structured.formats.marks import Marks, pattern_of, without_marks
from ttmark.gen_service.features.structured.formats.tagged_values import kinds, resolved
from ttmark.gen_service.features.structured.formats.tool_formats import Quotes, Tagged
from ttmark.gen_service.features.structured.grammars.json_grammar import SchemaRefused, guided
from ttmark.gen_service.features.structured.grammars.schema_faults import DATE, exact, pattern_fault

_ALL = ("string", "integer", "number", "boolean", "null", "array", "object")
_PYTHON_TEXT = r"/'([^'\\\n]|\\.)*'/"
_PYTHON_ITEM = r"""/'([^'\\\n]|\\.)*'|"([^"\\\n]|\\.)*"|-?[0-9]+(\.[0-9]+)?|True|False|None/"""
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_FORMATS = {
    "date": DATE,
    "time": _TIME,
    "date-time": f"{DATE}T{_TIME}",
    "uuid": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}
_DEEPEST = 4  # beyond it a value with marks of its own is any
_ANY = r"(.|\n)"
_SIGNS = {"/": r"\/", "\n": r"\n", "\\\n": r"\n"}


class TaggedGrammar:
    """Rules for the arguments of one function, whose names begin with that of its rule.

    Args:
        schema: as `check_schemas` lets it through.
        follows: marks of which one stands behind the last value.

    Raises:
        SchemaRefused: a pattern cannot be kept to, though it has to be.
    """

    def __init__(
        self,
        rule: str,
        tagged: Tagged,
        schema: Mapping[str, Any],
        marks: Marks,
        follows: Sequence[str],
        *,
        lenient: bool,
    ) -> None:
        self._rule, self._tagged, self._marks = rule, tagged, marks
        self._schema, self._lenient = exact(schema), lenient
        self._follows = "".join({follow[:1] for follow in (tagged.between + tagged.key, *follows) if follow})
        self.lines: list[str] = []
        self._build()

    def _build(self) -> None:
        properties = self._schema.get("properties") or {}
        needed = set(self._schema.get("required") or ())
        between, key = self._tagged.between, self._tagged.key
        if not properties and self._schema.get("additionalProperties") is not False:
            name = self._value(f"{self._rule}_free", {})
            first, more = self._marks.lark(key), self._marks.lark(between + key)
            word = r"/[A-Za-z_][A-Za-z0-9_.-]{0,63}/"
            self.lines.append(f"{self._rule}_args: ({first} {word} {name} ({more} {word} {name}){{0,15}})?")
            return
        pairs = []
        for number, name in enumerate(self._ordered(properties)):
            value = self._value(f"{self._rule}_{number}", properties[name])
            first = f"{self._marks.lark(key + name)} {value}"
            pairs.append((first, f"{self._marks.lark(between + key + name)} {value}", name in needed))
        self.lines.append(f"{self._rule}_args: {self._in_order(self._rule, pairs)}")

    def _in_order(self, name: str, pairs: Sequence[tuple[str, str, bool]]) -> str:
        """The name of a rule for pairs: each as it stands first and behind others, and whether it has to."""
        for number, (first, more, needed) in enumerate(pairs):
            rest, behind = f"{name}_r{number + 1}", f"{name}_s{number + 1}"
            self.lines.append(f"{name}_r{number}: {first} {behind}" + ("" if needed else f" | {rest}"))
            self.lines.append(f"{name}_s{number}: {more} {behind}" + ("" if needed else f" | {behind}"))
        self.lines += [f'{name}_{each}{len(pairs)}: ""' for each in "rs"]
        return f"{name}_r0"

    def _ordered(self, properties: Mapping[str, Any]) -> list[str]:
        return sorted(properties) if self._tagged.sorts else list(properties)

    def _value(self, name: str, schema: Any) -> str:
        """The name of a rule for a value and the marks around it."""
        schema = self._resolved(schema)
        allowed = kinds(schema) or set(_ALL)
        if "number" in allowed:
            allowed |= {"integer"}
        groups: dict[Quotes, set[str]] = {}
        for kind, quotes in self._tagged.quotes.items():
            if kind in allowed:
                groups.setdefault(quotes, set()).add(kind)
        lines = []
        for number, (quotes, found) in enumerate(groups.items()):
            rule = f"{name}_{number}"
            lines.append(rule)
            front = self._marks.lark(quotes.before)
            if "string" in found and self._tagged.plain:
                self.lines += self._text(rule, schema, quotes, front)
                continue
            allowed_here = found | ({"number"} & allowed)
            value = self._other(rule, schema, allowed_here, 0)
            self.lines.append(f"{rule}: {front} ({value}) {self._marks.lark(quotes.after)}")
        self.lines.append(f"{name}: " + (" | ".join(lines) or '""'))
        return name

    def _text(self, rule: str, schema: Mapping[str, Any], quotes: Quotes, front: str) -> list[str]:
        """Rules for a text as it is, up to the mark behind it."""
        end = quotes.after
        terminal = f"TEXT_{rule.upper()}"
        banned = without(end) if end else f"[{re.escape(self._follows)}]"
        body = self._pattern(schema, banned)
        if not end:
            return [f"{rule}: {front} {terminal}", f"{terminal}: {body}"]
        return [*self._marks.until(rule, terminal, end, front), f"{terminal}: {body}"]

    def _other(self, rule: str, schema: Mapping[str, Any], allowed: set[str], depth: int) -> str:
        """An alternative for each way to write a value that is no plain text."""
        if self._tagged.inner and ({"array", "object"} & allowed or depth):
            return " | ".join(self._inner(rule, schema, kind, depth) for kind in sorted(allowed))
        restricted = {key: value for key, value in schema.items() if key != "type"} | {
            "type": sorted(allowed)
        }
        whole = {
            **restricted,
            **{key: value for key, value in self._schema.items() if key in ("$defs", "definitions")},
        }
        items = self._resolved(schema.get("items", {}))
        if self._tagged.python_lists and allowed == {"array"} and kinds(items) <= {"string"}:
            return f'"[" ({_PYTHON_ITEM} (", " {_PYTHON_ITEM}){{0,63}})? "]"'
        ways = [f"%json {guided(whole, lenient=self._lenient)}"]
        if "enum" not in schema and "const" not in schema:
            ways += ['"True" | "False"'] * ("boolean" in allowed) + ['"None"'] * ("null" in allowed)
        if "string" in allowed and self._tagged.quote == "'":
            given = schema.get("enum")
            texts = [repr(each) for each in given if isinstance(each, str)] if isinstance(given, list) else []
            ways += [json.dumps(text, ensure_ascii=False) for text in texts] or [_PYTHON_TEXT]
        return " | ".join(ways)

    def _inner(self, rule: str, schema: Mapping[str, Any], kind: str, depth: int) -> str:
        """A value whose texts have marks of their own; the rules that it needs are added."""
        inner = self._marks.lark(self._tagged.inner)
        name = f"{rule}_{kind}"
        if kind == "string":
            if isinstance(given := schema.get("enum"), list):
                texts = (json.dumps(each, ensure_ascii=False) for each in given if isinstance(each, str))
                return f"{inner} ({' | '.join(texts)}) {inner}"
            terminal = f"TEXT_{name.upper()}"
            self.lines += self._marks.until(name, terminal, self._tagged.inner, inner)
            self.lines.append(f"{terminal}: {self._pattern(schema, without(self._tagged.inner))}")
            return name
        if kind == "array":
            item = self._nested(f"{name}_item", schema.get("items"), depth)
            self.lines.append(f'{name}: "[" ({item} ("," {item}){{0,63}})? "]"')
            return name
        if kind == "object":
            properties = schema.get("properties")
            if not isinstance(properties, Mapping) or not properties:
                any_value = self._nested(f"{name}_any", {}, depth)
                self.lines.append(f"{name}_pair: /[A-Za-z_][A-Za-z0-9_]{{0,63}}:/ {any_value}")
                self.lines.append(f'{name}: "{{" ({name}_pair ("," {name}_pair){{0,63}})? "}}"')
                return name
            needed, pairs = set(schema.get("required") or ()), []
            for number, key in enumerate(self._ordered(properties)):
                value = self._nested(f"{name}_p{number}", properties[key], depth)
                pair = f"{json.dumps(key + ':')} {value}"
                pairs.append((pair, f'"," {pair}', key in needed))
            self.lines.append(f'{name}: "{{" {self._in_order(name, pairs)} "}}"')
            return name
        whole = {**{key: value for key, value in schema.items() if key != "type"}, "type": kind}
        return f"%json {guided(whole, lenient=self._lenient)}"

    def _nested(self, name: str, schema: Any, depth: int) -> str:
        schema = self._resolved(schema) if depth < _DEEPEST else {"type": ["string", "integer", "boolean"]}
        allowed = kinds(schema) or set(_ALL if depth < 1 else _ALL[:-2])
        self.lines.append(f"{name}: " + self._other(name, schema, allowed, depth + 1))
        return name

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        return resolved(schema, self._schema)

    def _pattern(self, schema: Mapping[str, Any], banned: str) -> str:
        """A terminal for texts that a schema allows, without what is banned."""
        given = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(given, list) and (texts := [each for each in given if isinstance(each, str)]):
            return " | ".join(json.dumps(each, ensure_ascii=False) for each in texts)
        least, most = schema.get("minLength", 0), schema.get("maxLength", "")
        parts = [f"/{_ANY}{{{least},{most}}}/" if least or most != "" else f"/{_ANY}*/"]
        if written := _FORMATS.get(schema.get("format", "")):
            parts.append(f"/{written}/")
        pattern = schema.get("pattern")
        if pattern is not None and not pattern_fault(pattern):
            parts.append(f"/{_inside(pattern)}/")
        elif pattern is not None and not self._lenient:
            raise SchemaRefused(f"pattern {pattern}: not supported", self._rule)
        return " & ".join([*parts, *([f"~/{_ANY}*{banned}{_ANY}*/"] if banned else [])])


def without(mark: str) -> str:
    """A pattern of what no text before a mark holds; special tokens are in no text."""
    return "" if without_marks(mark) != mark else pattern_of(mark)


def _inside(pattern: str) -> str:
    """A pattern between the signs of a grammar's regular expression; it matches a whole text."""
    begun, ended = pattern.startswith("^"), re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern) is not None
    middle = pattern[begun : len(pattern) - ended]
    middle = re.sub(r"\\.|/|\n", lambda found: _SIGNS.get(found[0], found[0]), middle, flags=re.DOTALL)
    return f"{'' if begun else _ANY + '*'}({middle}){'' if ended else _ANY + '*'}"
