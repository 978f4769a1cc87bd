"""The schemes by name; adding one is a file and a line here."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from ttmark.shared.watermark.schemes.base import Parameter, Scheme
from ttmark.shared.watermark.schemes.dipmark import DiPmark
from ttmark.shared.watermark.schemes.gumbel import Gumbel
from ttmark.shared.watermark.schemes.mcmark import MCMark
from ttmark.shared.watermark.schemes.synthid import SynthID

SCHEMES: Mapping[str, type[Scheme]] = MappingProxyType(
    {scheme.name: scheme for scheme in (SynthID, DiPmark, MCMark, Gumbel)}
)


def scheme_names() -> tuple[str, ...]:
    """The names of all schemes."""
    return tuple(SCHEMES)


def build_scheme(name: str, parameters: Mapping[str, Parameter]) -> Scheme:
    """The scheme `name` with its parameters, defaults filled in.

    Raises ValueError for an unknown scheme or parameter, or a value of the wrong type or range.
    """
    if name not in SCHEMES:
        raise ValueError(f"unknown scheme {name!r}; known: {', '.join(SCHEMES)}")
    scheme = SCHEMES[name]
    defaults = scheme_parameters(scheme())
    values = {key: _checked(name, key, value, defaults) for key, value in parameters.items()}
    return scheme(**values)


def scheme_parameters(scheme: Scheme) -> dict[str, Parameter]:
    """The resolved parameters of a scheme, by name."""
    return {field.name: getattr(scheme, field.name) for field in fields(scheme)}


def _checked(scheme: str, key: str, value: Parameter, defaults: Mapping[str, Parameter]) -> Parameter:
    if key not in defaults:
        raise ValueError(f"{scheme} has no parameter {key!r}; it has {', '.join(defaults)}")
    wanted = type(defaults[key])
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise ValueError(f"{scheme} parameter {key} must be {wanted.__name__}, not {value!r}")
    return value
