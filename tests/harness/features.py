"""Which modules belong to which optional feature: who asks a text about a mark needs none of them."""

import re
from functools import cache

from tests.harness.imports import PACKAGES, ROOT, imports_between, module_name, sources

FEATURES_FOLDER = re.compile(r"(?:gen_service|detect_service|services)/features/(\w+)/")

NEEDS = re.compile(r"^NEEDS = \(([^)]*)\)", re.M)


def features() -> list[str]:
    folders = (ROOT / package / "features" for package in PACKAGES)
    return sorted({path.parent.name for folder in folders for path in folder.glob("*/__init__.py")})


def feature_of(path: str) -> str | None:
    """The feature that a module belongs to, by its path below the root of the tree."""
    inside = FEATURES_FOLDER.match(path)
    return inside[1] if inside else None


def needs_of(feature: str) -> set[str]:
    """The other features that a feature says it imports."""
    folders = [ROOT / package / "features" / feature / "__init__.py" for package in PACKAGES]
    said = [NEEDS.search(path.read_text()) for path in folders if path.exists()]
    return {name for found in said if found for name in re.findall(r"\w+", found[1])}


@cache
def importers() -> dict[str, list[str]]:
    """By feature: the modules outside it, and outside those that need it, that import one of its own, inside
    functions too."""
    paths = {module_name(path): str(path.relative_to(ROOT)) for path in sources()}
    found: dict[str, set[str]] = {name: set() for name in features()}
    for module, others in imports_between(PACKAGES).items():
        for other in others:
            feature = feature_of(paths[other])
            home = feature_of(paths[module])
            if feature in (None, home) or (home is not None and feature in needs_of(home)):
                continue
            found[feature].add(paths[module])
    return {feature: sorted(modules) for feature, modules in found.items()}
