"""Features: folders of a package that nothing else imports; they are found by listing them."""

import pkgutil
from collections.abc import Iterable
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

FOLDERS = ("ttmark.detect_service.features", "ttmark.gen_service.features", "ttmark.services.features")


def modules_of(name: str, *folders: str) -> list[ModuleType]:
    """The modules called `name` of all features that have one, each behind those that it needs.

    A feature names the features that it needs in `NEEDS`; else they are in order of their names.

    Args:
        name: such as `service`, what a service opens; `settings`; `commands`; `events`, who hears of events.
        folders: packages that hold features; none: all.
    """
    listed = (f"{folder}.{feature}" for folder in folders or FOLDERS for feature in _in_order(folder))
    return [import_module(f"{feature}.{name}") for feature in listed if _is_there(f"{feature}.{name}")]


def module_of(feature: str, name: str) -> ModuleType | None:
    """The module `name` of a feature; None: there is no such feature, or it has none."""
    of_feature = (f"{folder}.{feature}" for folder in FOLDERS if _is_there(folder))
    places = (f"{one}.{name}" for one in of_feature if _is_there(one) and _is_there(f"{one}.{name}"))
    place = next(places, None)
    return None if place is None else import_module(place)


def _is_there(module: str) -> bool:
    """Whether there is such a module: a folder that holds no more than what Python left there is none."""
    found = find_spec(module)
    return found is not None and found.origin is not None


def _in_order(folder: str) -> Iterable[str]:
    if not _is_there(folder):
        return ()
    names = sorted(one.name for one in pkgutil.iter_modules(import_module(folder).__path__))
    needs = {name: getattr(import_module(f"{folder}.{name}"), "NEEDS", ()) for name in names}
    return [name for name in TopologicalSorter(needs).static_order() if name in needs]
