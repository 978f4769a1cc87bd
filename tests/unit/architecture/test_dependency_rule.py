"""The dependency rule of docs/adr/0001: read from the imports themselves."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("services", "gen_service", "detect_service", "evaluation", "shared")
MAY_IMPORT = {
    "services": set(PACKAGES),
    "gen_service": {"gen_service", "shared"},
    "detect_service": {"detect_service", "shared"},
    "evaluation": {"evaluation", "gen_service", "shared"},
    "shared": {"shared"},
}
CORE = Path("shared/watermark")
CORE_LIBRARIES = {"numpy", "array_api_compat"}
ONLY_IN = {
    "torch": ("gen_service/", "evaluation/"),
    "transformers": ("gen_service/", "evaluation/"),
    "redis": ("shared/keys/",),
}


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def reads_environment(path: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in {"environ", "getenv", "putenv"}
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_packages_import_only_what_the_dependency_rule_allows() -> None:
    offences = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources()
        for module in imported_modules(path)
        if (top := module.split(".")[0]) in PACKAGES
        and top not in MAY_IMPORT[path.relative_to(ROOT).parts[0]]
    ]
    assert offences == []


@pytest.mark.parametrize(("library", "homes"), ONLY_IN.items())
def test_a_heavy_library_is_imported_in_its_home_only(library: str, homes: tuple[str, ...]) -> None:
    offences = [
        str(path.relative_to(ROOT))
        for path in sources()
        if any(module.split(".")[0] == library for module in imported_modules(path))
        and not str(path.relative_to(ROOT)).startswith(homes)
    ]
    assert offences == []


def test_the_watermark_core_is_pure() -> None:
    allowed = CORE_LIBRARIES | set(sys.stdlib_module_names)
    offences = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources()
        if path.relative_to(ROOT).is_relative_to(CORE)
        for module in imported_modules(path)
        if module.split(".")[0] not in allowed and not module.startswith("shared.watermark")
    ]
    assert offences == []


def test_only_the_composition_root_reads_the_environment() -> None:
    offences = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.relative_to(ROOT).parts[0] != "services" and reads_environment(path)
    ]
    assert offences == []


def test_the_detection_app_starts_where_torch_and_transformers_cannot_be_imported(tmp_path: Path) -> None:
    for name in ("torch", "transformers"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is not installed here')\n")
    code = "import services.detect, sys; assert 'gen_service.engine' not in sys.modules"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_the_command_line_starts_without_a_server_and_without_scientific_libraries() -> None:
    heavy = {"fastapi", "uvicorn", "scipy", "torch", "pyarrow", "evaluation", "detect_service"}
    code = f"import services.cli.main, sys; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert loaded.strip() == "[]"
