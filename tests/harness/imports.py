"""Which module imports which, read from the imports themselves."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = "ttmark."
PACKAGES = ("library", "services", "gen_service", "detect_service", "evaluation", "shared")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Imports and attributes, which is all that these tests look at."""
    looked_at = (ast.Import, ast.ImportFrom, ast.Attribute)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, looked_at)]


def imported_modules(path: Path) -> Iterator[str]:
    """By the names of the folders, which is what they are called below `ttmark`."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix(HOME) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.removeprefix(HOME)


def module_name(path: Path) -> str:
    """What a file is called, below `ttmark`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_between(packages: tuple[str, ...]) -> dict[str, set[str]]:
    """Modules of the packages and the modules of them that each imports, inside functions too."""
    paths = {module_name(path): path for path in sources() if path.relative_to(ROOT).parts[0] in packages}
    graph: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in nodes(path):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name.removeprefix(HOME) for alias in node.names} & paths.keys()
            elif isinstance(node, ast.ImportFrom) and node.module:
                module = node.module.removeprefix(HOME)
                submodules = {f"{module}.{alias.name}" for alias in node.names} & paths.keys()
                graph[name] |= submodules or ({module} & paths.keys())
    return graph
