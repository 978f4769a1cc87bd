"""docs/how-it-works.md and its picture show ways that the code goes."""

import ast
import re
from functools import cache
from xml.etree import ElementTree

from tests.harness.imports import ROOT

PAGE = (ROOT / "docs/how-it-works.md").read_text()
PICTURE = ElementTree.parse(ROOT / "docs/images/way-light.svg").getroot()
STORE_LIBRARIES = {"redis", "sqlite3"}


@cache
def imports_of(package: str) -> frozenset[str]:
    """Modules that a package imports; of a service as a whole, those that put it together."""
    folder = ROOT / package
    modules: set[str] = set()
    of_all = [*folder.glob("*.py"), *folder.glob("composition/*.py")]
    for path in folder.rglob("*.py") if "/" in package else of_all:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(modules)


def is_imported(source: str, target: str) -> bool:
    """A feature is called by what it imports, which does not know it."""
    if "/features/" in target:
        source, target = target, source
    name = "ttmark." + target.replace("/", ".")
    return any(module == name or module.startswith(name + ".") for module in imports_of(source))


def is_documented(call: str, target: str) -> bool:
    service = {"gen_service": "generation", "detect_service": "detection"}[target.split("/")[0]]
    return f"### {call}\n" in (ROOT / f"docs/reference/http-{service}.md").read_text()


def drawn() -> dict[tuple[str, str], str | None]:
    """The picture's arrows, and the call over the network that each is, if it is none in the process."""
    return {
        (path.attrib["data-from"], path.attrib["data-to"]): path.get("data-call")
        for path in PICTURE.iter("{http://www.w3.org/2000/svg}path")
        if "data-from" in path.attrib
    }


def test_each_arrow_of_the_picture_is_an_import_or_a_call_that_is_documented() -> None:
    made_up = []
    for (source, target), call in drawn().items():
        if call is None:
            real = is_imported(source, target)
        elif target == "store":
            real = {module.split(".")[0] for module in imports_of(source)} >= STORE_LIBRARIES
        else:
            real = is_documented(call, target)
        if not real:
            made_up.append(f"{source} -> {target} ({call})")
    assert made_up == []


def test_the_page_tells_the_arrows_that_the_picture_shows() -> None:
    rows = re.findall(r"^(?:-|\d\.|10\.) `([\w/]+)` → `([\w/]+)`: (.*)$", PAGE, re.M)
    assert {(source, target) for source, target, _ in rows} == drawn().keys()
    calls = {call for call in drawn().values() if call}
    assert {call for call in calls if any(call in what for _, _, what in rows)} == calls


def test_the_page_names_every_package_of_the_services() -> None:
    packages = {
        str(path.parent.relative_to(ROOT))
        for top in ("gen_service", "detect_service", "shared", "services")
        for pattern in ("*/__init__.py", "features/*/__init__.py")
        for path in (ROOT / top).glob(pattern)
    }
    assert packages - set(re.findall(r"`([\w/]+)`", PAGE)) == set()
    shown = {group.attrib["data-package"] for group in PICTURE.iter() if "data-package" in group.attrib}
    assert shown - packages == {"services", "detect_service", "store"}
    assert {end for arrow in drawn() for end in arrow} == shown | {"caller"}
