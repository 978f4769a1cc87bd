"""Features: folders of a package that nothing else imports; they are found by listing them."""

import pkgutil
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

FOLDERS = ("ttmark.detect_service.features", "ttmark.gen_service.features", "ttmark.services.features")


def modules_of(name: str, *folders: str) -> list[ModuleType]:
    """The modules called `name` of all features that have one, by the names of the features.

    Args:
        name: such as `service`, what a service opens; `settings`; `commands`.
        folders: packages that hold features; none: all.
    """
    listed = (
        f"{folder}.{feature.name}"
        for folder in folders or FOLDERS
        if find_spec(folder) is not None
        for feature in sorted(pkgutil.iter_modules(import_module(folder).__path__), key=lambda one: one.name)
    )
    return [import_module(f"{feature}.{name}") for feature in listed if find_spec(f"{feature}.{name}")]
