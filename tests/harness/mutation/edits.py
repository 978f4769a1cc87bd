"""How the nodes of a syntax tree can be wrong: each edit replaces one expression or statement."""

import ast
import re
from collections.abc import Iterator, Sequence

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
