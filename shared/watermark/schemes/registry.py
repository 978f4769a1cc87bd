"""The schemes by name; adding one is a file and a line here, or elsewhere a file and an entry point."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from ttmark.shared.watermark.schemes.base import Parameter, Scheme
from ttmark.shared.watermark.schemes.dipmark import DiPmark
from ttmark.shared.watermark.schemes.gumbel import Gumbel
from ttmark.shared.watermark.schemes.mcmark import MCMark
from ttmark.shared.watermark.schemes.synthid import SynthID

ENTRY_POINTS = "ttmark.schemes"
"""Group of the entry points that name schemes of other packages: `toy = "package.module:Class"`."""
SCHEMES: Mapping[str, type[Scheme]] = MappingProxyType(
    {scheme.name: scheme for scheme in (SynthID, DiPmark, MCMark, Gumbel)}
)


def scheme_names() -> tuple[str, ...]:
    return (*SCHEMES, *(name for name in _named_elsewhere() if name not in SCHEMES))


def find_scheme(name: str) -> type[Scheme]:
    """The scheme of that name.

    Raises:
        ValueError: there is none, or the package that names it does not hold one.
    """
    if name in SCHEMES:
        return SCHEMES[name]
    if (entry_point := _named_elsewhere().get(name)) is None:
        raise ValueError(f"unknown scheme {name!r}; known: {', '.join(scheme_names())}")
    return _loaded(entry_point)


def scheme_title(name: str) -> str:
    """A scheme in tables and plots.

    Raises:
        ValueError: see `find_scheme`.
    """
    return find_scheme(name).title or name


def build_scheme(name: str, parameters: Mapping[str, Parameter]) -> Scheme:
    """The scheme `name` with its parameters, defaults filled in.

    Raises ValueError for an unknown scheme or parameter, or a value of the wrong type or range.
    """
    scheme = find_scheme(name)
    defaults = scheme_parameters(scheme())
    values = {key: _checked(name, key, value, defaults) for key, value in parameters.items()}
    return scheme(**values)


def scheme_parameters(scheme: Scheme) -> dict[str, Parameter]:
    return {field.name: getattr(scheme, field.name) for field in fields(scheme)}


@cache
def _named_elsewhere() -> Mapping[str, EntryPoint]:
    """The entry points by the names that packages give to their schemes."""
    return {entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINTS)}


@cache
def _loaded(entry_point: EntryPoint) -> type[Scheme]:
    try:
        found = entry_point.load()
    except Exception as error:  # another package's code
        raise ValueError(f"scheme {entry_point.name!r}: {entry_point.value} fails: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Scheme) and found.name == entry_point.name):
        raise ValueError(
            f"scheme {entry_point.name!r}: {entry_point.value} is no Scheme with name = {entry_point.name!r}"
        )
    return found


def _checked(scheme: str, key: str, value: Parameter, defaults: Mapping[str, Parameter]) -> Parameter:
    if key not in defaults:
        raise ValueError(f"{scheme} has no parameter {key!r}; it has {', '.join(defaults)}")
    wanted = type(defaults[key])
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise ValueError(f"{scheme} parameter {key} must be {wanted.__name__}, not {value!r}")
    return value
