"""The dependency rule of docs/adr/0001: read from the imports themselves."""

import ast
import os
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.harness.imports import HOME, PACKAGES, ROOT, imported_modules, imports_between, nodes, sources

MAY_IMPORT = {
    "library": set(PACKAGES) - {"evaluation"},  # a second face beside services, which never import it
    "services": set(PACKAGES) - {"library"},
    "gen_service": {"gen_service", "shared"},
    "detect_service": {"detect_service", "shared"},
    "evaluation": {"evaluation", "gen_service", "shared"},
    "shared": {"shared"},
}
# What a feature adds to commands, settings and the start of a service: it knows how these are made.
OUTER = re.compile(r"/features/\w+/(service|settings|commands|in_detect)(\.py|/)")
# From the ground up: a folder of shared/ imports those before it, never one behind it.
SHARED_FLOORS = (
    "watermark",
    "languages",
    "schemas",
    "signed_files",
    "manifests",
    "observability",
    "vault",
    "access",
    "keys",
    "http",
    "pages",
    "limits",
    "client",
)
CORE = Path("shared/watermark")
CORE_LIBRARIES = {"numpy"}
ONLY_IN = {
    "torch": ("gen_service/", "evaluation/", "library/"),
    "transformers": ("gen_service/", "evaluation/", "library/"),
    "c2pa": ("shared/manifests/",),
    "redis": ("shared/vault/",),
    "vllm": ("gen_service/features/vllm/",),
}


OUTGOING = "shared/outgoing.py"
CALLERS = (
    OUTGOING,
    "services/healthcheck.py",  # starts every five seconds, and asks loopback alone
)
CALL = re.compile(
    r"httpx\.(Async)?(Client|HTTPTransport)\(|httpx\.(get|post|put|patch|delete|head|options|request|stream)\b"
    r"|\b(create|open)_connection\(|from (httpx import|(http|urllib) import (client|request)\b)"
    r"|^ *(from|import) (http\.client|urllib\.request|requests|urllib3|aiohttp)\b",
    re.M,
)


def reads_environment(path: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in {"environ", "getenv", "putenv"}
        for node in nodes(path)
    )


def test_packages_import_only_what_the_dependency_rule_allows() -> None:
    offences = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources()
        for module in imported_modules(path)
        if (top := module.split(".")[0]) in PACKAGES
        and top not in MAY_IMPORT[path.relative_to(ROOT).parts[0]]
        and not (top == "services" and OUTER.search(str(path.relative_to(ROOT))))
    ]
    assert offences == []


def test_no_arrow_between_the_folders_of_shared_runs_back_up() -> None:
    floors = {name: floor for floor, name in enumerate(SHARED_FLOORS)}
    folders = {path.parent.name for path in (ROOT / "shared").glob("*/__init__.py")}
    offences = [
        f"{path.relative_to(ROOT)} imports {module}"
        for folder in folders
        for path in sorted((ROOT / "shared" / folder).rglob("*.py"))
        for module in imported_modules(path)
        if module.startswith("shared.") and floors.get(module.split(".")[1], 0) > floors[folder]
    ]
    assert folders <= set(SHARED_FLOORS)
    assert offences == []


def test_a_heavy_library_is_imported_in_its_home_only() -> None:
    offences = [
        f"{path.relative_to(ROOT)} imports {library}"
        for path in sources()
        for library in {module.split(".")[0] for module in imported_modules(path)} & ONLY_IN.keys()
        if not str(path.relative_to(ROOT)).startswith(ONLY_IN[library])
    ]
    assert offences == []


def test_the_watermark_core_is_pure() -> None:
    allowed = CORE_LIBRARIES | set(sys.stdlib_module_names)
    offences = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources()
        if path.relative_to(ROOT).is_relative_to(CORE)
        for module in imported_modules(path)
        if module.split(".")[0] not in allowed and not module.startswith(".".join(CORE.parts))
    ]
    assert offences == []


def test_decoding_knows_no_engine_and_the_engine_no_api() -> None:
    may_import = {"decoding": {"decoding"}, "engine": {"engine", "decoding", "hub"}, "hub": {"hub"}}
    offences = [
        f"{name} imports {other}"
        for name, others in imports_between(("gen_service",)).items()
        for other in others
        if (folder := name.split(".")[1:2]) and folder[0] in may_import
        if other.split(".")[1] not in may_import[folder[0]]
    ]
    assert offences == []


def test_neither_modules_nor_folders_import_each_other_in_a_circle() -> None:
    """Inside functions, and for types alone, either.

    A folder's own modules stand below its subfolders or above, never both. `__main__` is above all.
    """
    modules = imports_between(PACKAGES)
    folders: dict[str, set[str]] = {}
    for name, imported in modules.items():
        folders.setdefault(_folder(name), set()).update(map(_folder, imported - {name}))
    for folder, others in folders.items():
        others.discard(folder)
    for graph in (modules, folders):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def _folder(module: str) -> str:
    is_alone = module.endswith(".__main__") or ROOT.joinpath(*module.split(".")).is_dir()
    return module if is_alone else module.rpartition(".")[0]


def test_only_the_composition_root_reads_the_environment() -> None:
    """And who makes our calls, in programs of others too: their proxies and certificates are named there."""
    offences = [
        name
        for path in sources()
        if not (name := str(path.relative_to(ROOT))).startswith(("services/", OUTGOING))
        and not OUTER.search(name)
        and not OUTER.search(name)
        and reads_environment(path)
    ]
    assert offences == []


def test_every_call_of_ours_is_made_by_one_module() -> None:
    made = {
        name: found[0]
        for path in sources()
        if (name := str(path.relative_to(ROOT))) and (found := CALL.search(path.read_text()))
    }
    assert made.keys() <= set(CALLERS), made


def test_the_detection_app_starts_where_torch_and_transformers_cannot_be_imported(tmp_path: Path) -> None:
    for name in ("torch", "transformers"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is not installed here')\n")
    module = "ttmark.services.composition.detection_service"
    code = f"import {module}, sys; assert 'ttmark.gen_service.engine' not in sys.modules"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_up_shows_a_text_without_the_libraries_that_the_services_load() -> None:
    code = (
        "import sys\n"
        "from ttmark.gen_service.demo_model import DEMO_MODEL_PATH\n"
        "from ttmark.services.cli.demonstration import has_chat_template\n"
        "assert has_chat_template(DEMO_MODEL_PATH)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert {"torch", "transformers", "fastapi", "scipy"} & set(loaded.split()) == set()


def test_the_command_line_starts_without_a_server_and_without_scientific_libraries() -> None:
    heavy = {"fastapi", "uvicorn", "scipy", "torch", "pyarrow", "evaluation", "detect_service.ask"}
    code = "import ttmark.services.cli.main, sys; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert heavy & {name.removeprefix(HOME) for name in loaded.split()} == set()
