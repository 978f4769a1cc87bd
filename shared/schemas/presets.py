"""The profiles that keys are made with, by what their texts are for (docs/adr/0073)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Purpose(StrEnum):
    """What the texts of a key are for."""

    ANSWERS = "answers"
    EDITED_TEXT = "edited-text"


PRESETS: Mapping[Purpose, Mapping[str, Any]] = {
    Purpose.ANSWERS: {"scheme": "synthid", "parameters": {"depth": 12}, "context_width": 2, "pool": 16},
    Purpose.EDITED_TEXT: {"scheme": "gumbel", "context_width": 2, "pool": 16},
}
"""Fields of a profile; what is left out has the scheme's default."""


def profile_fields(purpose: Purpose | None = None, **given: Any) -> dict[str, Any]:
    """The fields of a profile for a purpose, by default for answers; those that are given replace its own.

    A field that is None is not given. A scheme that is given starts from its own defaults.

    Raises:
        ValueError: a purpose and a scheme are given, and both choose the scheme.
    """
    fields = {name: value for name, value in given.items() if value is not None}
    if "scheme" not in fields:
        preset = PRESETS[purpose or Purpose.ANSWERS]
        parameters = {**preset.get("parameters", {}), **fields.get("parameters", {})}
        return {**preset, **fields, "parameters": parameters}
    if purpose is not None:
        raise ValueError("a purpose chooses the scheme: give one of the two")
    return fields
