"""The changes that a source file can undergo: each makes one expression or statement wrong.

Which of them are tried depends on the texts of lines: an edit elsewhere keeps the choice."""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd, ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip
_OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}
_WORD = re.compile(r"[\w.:/-]{1,40}")  # a name of something; a text for people has spaces
_LOG = re.compile(r"(self\.)?_?(log|logger|warnings)\.")
_UNREAD = {"__repr__", "__str__", "__all__", "__slots__", "TYPE_CHECKING"}
Edit = tuple[ast.expr | ast.stmt, str]  # what is replaced by what


def edits_of(node: ast.AST, lines: tuple[int, int]) -> Iterator[tuple[tuple[int, int], Edit]]:
    """Every edit below a node, with the lines of which a test must run one; `lines` are those of the node."""
    if _is_unread(node):
        return
    if isinstance(node, ast.stmt):
        lines = _lines(node)
    yield from ((lines, edit) for edit in _of_statement(node))
    yield from ((lines, edit) for edit in _of_expression(node))
    for child in _children(node):
        yield from edits_of(child, lines)


def _is_unread(node: ast.AST) -> bool:
    """Whether no test should read this: documentation, words for people, types."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return bool(_LOG.match(ast.unparse(function)))
        case ast.Subscript(value=ast.Name(id="Literal")):
            return True
        case (
            ast.FunctionDef(name=name)
            | ast.If(test=ast.Name(id=name))
            | ast.Assign(targets=[ast.Name(id=name)])
        ):
            return name in _UNREAD
    return False


def _lines(node: ast.stmt) -> tuple[int, int]:
    """The lines that run whenever the statement does, without those of its blocks."""
    last = node.end_lineno or node.lineno
    body: Sequence[ast.stmt] = getattr(node, "body", ())
    if not body:
        return node.lineno, last
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return body[0].lineno, last  # its defaults are seen by who runs it
    return node.lineno, max(node.lineno, body[0].lineno - 1)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    unread = {"annotation", "returns", "decorator_list", "bases", "keywords"}
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.Raise) or (name in unread and not isinstance(node, ast.Call)):
            continue
        yield from (
            child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
        )


def _of_statement(node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete() | ast.AugAssign():
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass"
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.Break() | ast.Continue():
            yield node, _SWAPPED[type(node)].__name__.lower()
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"not ({ast.unparse(test)})"
        case ast.comprehension(ifs=conditions):
            yield from ((condition, "True") for condition in conditions)
    if isinstance(node, ast.AugAssign) and type(node.op) in _SWAPPED:
        operator = _SWAPPED[type(node.op)]()
        yield node, ast.unparse(ast.AugAssign(node.target, operator, node.value))  # type: ignore[arg-type]


def _of_expression(node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(left=left, ops=[operator, *others], comparators=values) if (
            type(operator) in _SWAPPED
        ):
            swapped = [_SWAPPED[type(operator)](), *others]
            yield node, ast.unparse(ast.Compare(left, swapped, values))  # type: ignore[arg-type]
        case ast.BoolOp(op=operator, values=values):
            yield node, ast.unparse(ast.BoolOp(_SWAPPED[type(operator)](), values))  # type: ignore[arg-type]
        case ast.BinOp(op=ast.BitOr(), left=left, right=right) if _is_type(left) or _is_type(right):
            return
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SWAPPED:
            yield node, ast.unparse(ast.BinOp(left, _SWAPPED[type(operator)](), right))  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield node, ast.unparse(operand)
        case ast.Call(func=ast.Name(id=name) as function) if name in _OTHER_NAME:
            yield function, _OTHER_NAME[name]
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
            yield node, str(value - 1)
        case ast.Constant(value=float(value)):
            yield node, repr(value + 1)
        case ast.Constant(value=str(value)) if _WORD.fullmatch(value):
            yield node, repr(value + "?")


def _is_type(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(value=ast.Name(id=name)):
            return name.lstrip("_")[:1].isupper() and not name.isupper()
    return False


@dataclass(frozen=True)
class Change:
    """One change of one file; `first` to `last` are the lines of which a test must run one to see it."""

    path: str
    line: int
    code: str
    what: str
    first: int
    last: int
    begin: int
    end: int
    replacement: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"

    @property
    def key(self) -> str:
        """Names the change wherever its line stands in the file."""
        return f"{self.path} | {self.code} | {self.what}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.begin] + self.replacement.encode() + source[self.end :]


def changes_of(root: Path, path: str) -> list[Change]:
    """Every change of a file below `root`, in its order."""
    source = (root / path).read_bytes()
    lines = source.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    found = []
    for (first, last), (node, replacement) in edits_of(ast.parse(source), (1, len(lines))):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = " ".join(source[begin:end].decode().split())
        code, what = lines[node.lineno - 1].decode().strip(), f"{before} -> {replacement}"
        if before != replacement:
            found.append(Change(path, node.lineno, code, what, first, last, begin, end, replacement))
    return found


def changes_in(root: Path, folder: str) -> list[Change]:
    """Every change of the Python files of a folder."""
    paths = sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*.py"))
    return [change for path in paths for change in changes_of(root, path)]


def by_line(changes: Iterable[Change]) -> dict[tuple[str, int], list[Change]]:
    lines: dict[tuple[str, int], list[Change]] = {}
    for change in changes:
        lines.setdefault((change.path, change.line), []).append(change)
    return lines


def sample(changes: Iterable[Change], count: int, seed: int) -> list[Change]:
    """One change each of `count` lines, all lines being equally likely, in the order of the code."""
    seen: Counter[tuple[str, str]] = Counter()
    drawn = []
    for (path, _), choices in by_line(changes).items():
        line = (path, choices[0].code)
        seen[line] += 1
        chosen = min(choices, key=lambda change: _draw(seed, change.key, change.begin - change.end))
        drawn.append((_draw(seed, *line, seen[line]), chosen))
    different: dict[str, Change] = {}
    for _, change in sorted(drawn, key=lambda pair: pair[0]):
        different.setdefault(change.key, change)  # of lines that read alike one: an answer is about all
    first = list(different.values())[:count]
    return sorted(first, key=lambda change: (change.path, change.line))


def _draw(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
