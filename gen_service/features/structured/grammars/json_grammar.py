"""JSON schemas as grammars over a model's tokens.

A schema comes from a stranger, so what it may cost is limited everywhere: its size, what the library makes of
it, the time until it is ready, and the time of each mask (`GrammarState`).
"""

import json
import math
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, TypeVar

import torch
from llguidance import LLMatcher, LLParserLimits
from llguidance.gbnf_to_lark import any_to_lark

from ttmark.gen_service.features.structured.grammars.grammar import Grammar, GrammarFailed, GrammarSource
from ttmark.gen_service.features.structured.grammars.schema_faults import (
    exact,
    first_fault,
    malformed,
    never_ends,
    set_aside,
)
from ttmark.gen_service.features.structured.grammars.vocabulary import Vocabulary
from ttmark.shared.tokenization import TextTokenizer

T = TypeVar("T")

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
MAX_SCHEMA_BYTES = 64 * 1024
MAX_MULTIPLES = 10_000  # an automaton has as many states as the least common multiple of `multipleOf`
MAX_PROPERTIES = 1_000  # optional ones take time by the square of their number
MAX_PATTERN_PROPERTIES = 16  # each is compared with each
MAX_ALTERNATIVES = 300  # recursive ones take time by the square of their number, at each token
MAX_OPTIONAL_PARTS = 300  # of a pattern: each byte takes time by the square of their number
MAX_NUMBER = 2**53  # further on JSON's numbers are not exact (RFC 7493)
_WITH_NUMBERS = ("const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
MAX_GRAMMAR_BYTES = 2 * MAX_SCHEMA_BYTES
# Rather too many than too few: in classes and comments too. `#` may begin a comment that hides one.
_OPTIONAL = re.compile(
    r"""\\.|\+\??|\{\s*[1-9][\s\d,]*\}\??
    |(?P<optional>[*?]\??|\{\s*[0,]|\#|\|\s*(?=[|)]|$)|\((?:\?(?:[a-zA-Z-]*[:)]|P?<[\w.\[\]]*>))?\s*[|)])
    |\(\?""",
    re.VERBOSE,
)
_DEFINITION = re.compile(r"^[ \t]*[?!]?(?P<name>\w+)(?!\w)[^\n:]*:", re.MULTILINE)
_DIRECTIVE = re.compile(r"%\s*(json|regex|lark|llguidance)\b")
_IN_A_RULE = re.compile(r"at (?P<line>\d+)\(\d+\): (?:failed to compile JSON schema: )?(?P<reason>.*)")
# The library calls itself for each rule that a rule leads to. Only what is used of it is ever there.
_STACK_BYTES = 2**29
_KEPT = 16
_REHEARSALS = 2
_REHEARSED_TOKENS = 24


# All on one line, at most a blank after a comma or colon: given more room, a small model writes blanks until
# max_tokens. What a schema allows that cannot be kept to is refused.
_OPTIONS: dict[str, Any] = {
    "whitespace_flexible": False,
    "item_separator": ", ?",
    "key_separator": ": ?",
    "lenient": False,
    "coerce_one_of": False,
}
_LIBRARY: Mapping[str, Callable[[str], str]] = {
    "json_schema": lambda text: LLMatcher.grammar_from_json_schema(guided(json.loads(text))),
    "regex": LLMatcher.grammar_from_regex,
    "lark": LLMatcher.grammar_from_lark,
    "grammar": lambda text: LLMatcher.grammar_from_lark(_lark(text)),
}

_LIMITS = LLParserLimits(
    step_lexer_fuel=50_000,  # 4 ms
    max_items_in_row=500,  # ambiguity, which takes time by its third power
    step_max_items=20_000,  # 1 ms
    max_lexer_states=100_000,  # 50 MB
    max_grammar_size=100_000,
    verbose_errors=False,  # they would quote the completion
)


class SchemaRefused(Exception):
    """A schema that cannot be a grammar here; the text says what in it is at fault.

    Attributes:
        rule: the rule that it stands in, where it is one of several in a grammar of ours.
    """

    def __init__(self, reason: str, rule: str | None = None) -> None:
        super().__init__(reason)
        self.rule = rule


class JsonGrammars:
    """Makes grammars for one model; what that takes of its tokenizer is prepared at the first."""

    def __init__(self, tokenizer: TextTokenizer, ends: Collection[int]) -> None:
        self._tokenizer = tokenizer
        self._ends = frozenset(ends)
        # One thread: whoever sends bad schemas takes the time of others with schemas, and of nobody else.
        self._thread = ThreadPoolExecutor(1, "ttmark-grammars")
        before = threading.stack_size(_STACK_BYTES)
        try:
            self._thread.submit(int).result()  # begins it
        finally:
            threading.stack_size(before)
        # An agent sends the same tools with each turn.
        self._made = lru_cache(_KEPT)(self._make)

    def submit(self, schema: Mapping[str, Any] | GrammarSource) -> Future[Grammar]:
        """`compile`, in a thread of its own."""
        return self._thread.submit(self.compile, schema)

    def compile(self, schema: Mapping[str, Any] | GrammarSource) -> Grammar:
        """The grammar of what a schema allows; takes up to a second, in which other threads run.

        Args:
            schema: or the source of any grammar, the schemas in which have been checked.

        Raises:
            SchemaRefused: it is too large or complex, allows nothing, or has a keyword that is not supported.
            TokenizerUnsuitable: there can be no grammar for this model.
        """
        return self._made(schema if isinstance(schema, GrammarSource) else GrammarSource.of_schema(schema))

    def _make(self, source: GrammarSource) -> Grammar:
        if source.kind == "json_schema":
            check_schemas([json.loads(source.text)])
        elif len(source.text.encode()) > MAX_GRAMMAR_BYTES:
            raise SchemaRefused(f"the grammar is larger than the limit of {MAX_GRAMMAR_BYTES} bytes")
        elif source.kind == "regex":
            _check_optional(_optional_parts(source.text))
        vocabulary = self._vocabulary
        try:
            grammar = _LIBRARY[source.kind](source.text)
        except ValueError as error:
            raise SchemaRefused(_one_line(str(error))) from error
        matcher = LLMatcher(vocabulary.library, grammar, log_level=0, limits=_LIMITS)
        matcher.compute_bitmask()  # tables of the first mask are made here, not in the engine's thread
        if matcher.is_error():
            return self._make(_without_faults(source, matcher.get_error()))
        compiled = Grammar(matcher, self._ends, source, vocabulary.spelling)
        _rehearse(compiled, vocabulary.library.vocab_size)
        return compiled

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self._tokenizer, self._ends)


def guided(schema: Mapping[str, Any], *, lenient: bool = False) -> str:
    """A schema as a part of a Lark grammar, after `%json`, to be written as answers of JSON are.

    Args:
        lenient: leaves keywords aside that cannot be kept to.
    """
    options = _OPTIONS | {"lenient": lenient}
    if any(_values([schema], "properties", dict)):  # a name must not come again in another spelling
        options["json_allowed_escapes"] = 'nrbtf\\"'
    return json.dumps({**exact(schema), "x-guidance": options}, ensure_ascii=False)


def _lark(text: str) -> str:
    """A stranger's grammar in Lark.

    Raises:
        ValueError: it cannot be read, or could go around the limits of schemas.
    """
    if _DIRECTIVE.search(text):
        raise ValueError("%json, %regex and %llguidance are not available")
    try:
        lark = any_to_lark(text)
        _check_optional(_most_optional_parts(lark))
        return lark
    except SchemaRefused:
        raise
    except RecursionError:
        raise ValueError("the grammar is nested too deeply") from None
    except Exception as error:  # what it raises is not documented
        raise ValueError(str(error)) from error


def check_size(schemas: Sequence[Mapping[str, Any]]) -> None:
    """Refuses schemas that are too large; what is far too large is counted in part, and not written.

    Raises:
        SchemaRefused: all together have more than `MAX_SCHEMA_BYTES` as JSON.
    """
    waiting: list[Any] = [*schemas]
    least = 0
    while waiting and least <= MAX_SCHEMA_BYTES:
        one = waiting.pop()
        least += len(one) if isinstance(one, str | list | Mapping) else 0
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, Mapping):
            waiting += [*one, *one.values()]
    written = (len(json.dumps(schema, ensure_ascii=False).encode()) for schema in schemas)
    if least > MAX_SCHEMA_BYTES or sum(written) > MAX_SCHEMA_BYTES:
        raise SchemaRefused(f"the schema is larger than the limit of {MAX_SCHEMA_BYTES} bytes")


def _optional_parts(pattern: str) -> int:
    """How many parts of a pattern may be empty, at the most."""
    return sum(found["optional"] is not None for found in _OPTIONAL.finditer(pattern))


def _most_optional_parts(lark: str) -> int:
    """The most `_optional_parts` of a definition; a terminal's are those of the terminals in it too."""
    _, *definitions = _DEFINITION.split("start:\n" + lark)
    bodies: dict[str, str] = {}
    for name, body in zip(definitions[::2], definitions[1::2], strict=True):
        bodies[name] = bodies.get(name, "") + body

    @lru_cache(None)
    def count(name: str) -> int:
        body = bodies[name]
        terminals = [each for each in re.findall(r"\w+", body) if each.isupper() and each in bodies]
        inner = sum(map(count, terminals)) if name.isupper() else 0
        return _optional_parts(body) + body.count("~") + body.count("[") + inner

    return max(map(count, bodies))


def _check_optional(parts: int) -> None:
    if parts > MAX_OPTIONAL_PARTS:
        raise SchemaRefused(f"a pattern has more optional parts than the limit of {MAX_OPTIONAL_PARTS}")


def check_schemas(schemas: Sequence[Mapping[str, Any]]) -> None:
    """Refuses what takes the library seconds although it is short: all schemas of a grammar, together.

    Raises:
        SchemaRefused: naming the limit.
    """
    check_size(schemas)
    for schema in schemas:
        if (path := malformed(schema)) is not None:
            raise SchemaRefused(f"{_pointer(path)}: not what the keyword takes")
    if any(never_ends(schema) for schema in schemas):
        raise SchemaRefused("no text that ends fits the schema")
    if any("x-guidance" in schema for schema in schemas):  # the library's own options, ours among them
        raise SchemaRefused('Unimplemented keys: ["x-guidance"]')
    alternatives = chain(_values(schemas, "anyOf", list), _values(schemas, "oneOf", list))
    for name, found, limit in (
        ("properties", _values(schemas, "properties", dict), MAX_PROPERTIES),
        ("patternProperties", _values(schemas, "patternProperties", dict), MAX_PATTERN_PROPERTIES),
        ("alternatives", alternatives, MAX_ALTERNATIVES),
    ):
        if sum(map(len, found)) > limit:
            raise SchemaRefused(f"the schema has more {name} than the limit of {limit}")
    for pattern in chain(_values(schemas, "pattern", str), *_values(schemas, "patternProperties", dict)):
        _check_optional(_optional_parts(pattern))
    for keyword in _WITH_NUMBERS:
        for number in _numbers(_values(schemas, keyword, object)):
            if abs(number) > MAX_NUMBER:
                raise SchemaRefused(f"{keyword} {number} is beyond the limit of {MAX_NUMBER}")
    multiples = list(map(_without_point, _values(schemas, "multipleOf", (int, float))))
    if sum(multiples) > MAX_MULTIPLES or math.lcm(*multiples) > MAX_MULTIPLES:
        raise SchemaRefused(f"multipleOf is larger, all together, than the limit of {MAX_MULTIPLES}")


def _values(schema: Any, keyword: str, kind: type[T] | tuple[type[T], ...]) -> Iterator[T]:
    if isinstance(schema, Mapping):
        value = schema.get(keyword)
        if isinstance(value, kind):
            yield value
    for item in schema.values() if isinstance(schema, Mapping) else schema:
        if isinstance(item, Mapping | list):
            yield from _values(item, keyword, kind)


def _numbers(values: Iterable[Any]) -> Iterator[float]:
    for value in values:
        if isinstance(value, Mapping | list):
            yield from _numbers(value.values() if isinstance(value, Mapping) else value)
        elif isinstance(value, int | float):
            yield value


def _without_point(number: float) -> int:
    """A number without its decimal point: 12.5 gives 125.

    Raises:
        SchemaRefused: it is `true` or `false`, which Python takes for numbers.
    """
    if isinstance(number, bool):
        raise SchemaRefused("multipleOf is a number")
    decimal = Decimal(str(number)).normalize()
    return abs(int(decimal.scaleb(max(0, -int(decimal.as_tuple().exponent)))))


def _rehearse(grammar: Grammar, vocab: int) -> None:
    """Refuses a grammar that fails in the first tokens of some random completions."""
    random = torch.Generator().manual_seed(0)
    try:
        for _ in range(_REHEARSALS):
            state = grammar.begin()
            for _ in range(_REHEARSED_TOKENS):
                logits = torch.rand((1, vocab), generator=random)
                state.mask(logits, [()])
                token = int(logits.argmax())
                if grammar.ends_with(token):
                    break
                state.advance([token])
    except GrammarFailed as error:
        raise SchemaRefused(_one_line(str(error))) from error


def _without_faults(source: GrammarSource, error: str) -> GrammarSource:
    """A grammar of ours without what its schemas need not be kept to.

    Raises:
        SchemaRefused: it is held to what cannot be kept to, with its place; or no schema is at fault.
    """
    lines = source.text.split("\n") if source.kind == "lark" else []
    for number, line in enumerate(lines):
        first, *texts = line.split("%json ")
        mended = [_mended(text, line.partition(":")[0]) for text in texts]
        lines[number] = "%json ".join([first, *mended])
    if source.kind == "json_schema":
        _mended(guided(json.loads(source.text)), None)
    text = "\n".join(lines)
    if text in ("", source.text):
        found = _IN_A_RULE.match(error) if lines else None
        raise SchemaRefused(_one_line(found["reason"] if found else error))
    return replace(source, text=text)


def _mended(text: str, rule: str | None) -> str:
    """A schema at the beginning of a text, without what it need not be kept to."""
    schema, end = json.JSONDecoder().raw_decode(text)
    while fault := first_fault(schema):
        path, reason = fault
        without = set_aside(schema, path) if schema["x-guidance"]["lenient"] else None
        if without is None:
            raise SchemaRefused(_one_line(f"{_pointer(path)}: {reason}" if path else reason), rule)
        schema = without
    return json.dumps(schema, ensure_ascii=False) + text[end:]


def _pointer(path: Iterable[str]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def _one_line(error: str) -> str:
    return " ".join(error.replace("<non-verbose/>", "").split())[:300]
