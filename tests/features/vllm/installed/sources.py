"""vLLM's sources as they lie in a folder or a wheel: what is defined where, read without an import."""

import ast
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from zipfile import Path as InZip

Place = tuple[str, ast.stmt]
"""A module, and a statement in it that defines something."""


class Sources:
    """A package `vllm`, in a folder or a wheel."""

    def __init__(self, root: Path | InZip, version: str | None = None) -> None:
        self.root, self.version = root, version
        self._parsed = lru_cache(None)(self._parse)

    @classmethod
    def installed(cls) -> "Sources | None":
        """Those of the installed package; None: there is none."""
        found = find_spec("vllm")
        return cls(Path(found.submodule_search_locations[0])) if found and found.origin else None

    @classmethod
    def of_wheel(cls, wheel: Path) -> "Sources":
        """Those of a wheel, which is not installed."""
        return cls(InZip(str(wheel), "vllm/"), wheel.name.split("-")[1].split("+")[0])

    def names(self, dotted: str) -> set[str]:
        """Parameters of a function, or fields of a class and parameters of its constructor."""
        parts = dotted.split(".")
        first = next((at for at, part in enumerate(parts) if part[0].isupper()), len(parts) - 1)
        module, found = self._defined(".".join(parts[:first]), parts[first])
        for name in parts[first + 1 :]:
            if name not in (members := self._members(module, found)):
                raise LookupError(dotted)
            module, found = members[name]
        if not isinstance(found, ast.ClassDef):
            return _parameters(found)
        members = self._members(module, found)
        fields = {name for name, (_, defined) in members.items() if isinstance(defined, ast.AnnAssign)}
        return fields | (_parameters(members["__init__"][1]) if "__init__" in members else set())

    def set_on_self(self, module: str) -> set[str]:
        """Attributes that methods of a module set."""
        return {
            node.attr
            for node in ast.walk(self._parsed(module))
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }

    def _parse(self, module: str) -> ast.Module:
        path = self.root.joinpath(*module.split(".")[1:])
        for file in (path / "__init__.py", path.parent / f"{path.name}.py"):
            if file.is_file():
                return ast.parse(file.read_text("utf-8"))
        raise LookupError(module)

    def _defined(self, module: str, name: str) -> Place:
        """Where what a module has by this name is defined, behind its imports of it."""
        for node in ast.walk(self._parsed(module)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                return module, node
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name and (node.module or "").startswith("vllm"):
                        return self._defined(str(node.module), alias.name)
        raise LookupError(f"{module}.{name}")

    def _members(self, module: str, found: ast.stmt) -> dict[str, Place]:
        """What a class has by name, with what it inherits from classes of vLLM."""
        members: dict[str, Place] = {}
        if not isinstance(found, ast.ClassDef):
            return members
        for base in reversed(found.bases):
            if isinstance(base, ast.Name):
                try:
                    members |= self._members(*self._defined(module, base.id))
                except LookupError:
                    continue  # of another package
        for node in found.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                members[node.name] = module, node
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            members |= {target.id: (module, node) for target in targets if isinstance(target, ast.Name)}
        return members


def _parameters(found: ast.stmt) -> set[str]:
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    taken = found.args
    return {each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}
