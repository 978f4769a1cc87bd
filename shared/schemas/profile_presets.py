"""What a profile is made of where somebody says what for, or little."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Purpose(StrEnum):
    """What the texts of a key are for."""

    ANSWERS = "answers"
    EDITED_TEXT = "edited-text"


PRESETS: Mapping[Purpose, Mapping[str, Any]] = {
    Purpose.ANSWERS: {"scheme": "gumbel", "context_width": 2, "pool": 4},
    Purpose.EDITED_TEXT: {"scheme": "gumbel", "context_width": 2},
}
"""Fields of a profile; what is left out has the scheme's default."""


OWN = ("scheme", "parameters")
"""A key that is made with one of them starts from no preset."""


def profile_fields(purpose: Purpose | None = None, **given: Any) -> dict[str, Any]:
    """The fields of a profile for a purpose, by default for answers.

    `block_size`, `context_width` and `pool` replace the preset's. With a scheme or parameters the profile has
    the defaults of the scheme, which is Gumbel if none is given, and one key. A field that is None or empty
    is not given.

    Raises:
        ValueError: a purpose is given beside one of them.
    """
    fields = {name: value for name, value in given.items() if value not in (None, {})}
    if fields.keys().isdisjoint(OWN):
        return {**PRESETS[purpose or Purpose.ANSWERS], **fields}
    if purpose is not None:
        raise ValueError("a purpose chooses scheme and parameters: give it without them or leave it out")
    return {"scheme": "gumbel", **fields}
