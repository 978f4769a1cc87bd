"""The command that makes a result again."""

import shlex
import sys
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_args

from typer.models import ArgumentInfo, ParameterInfo

WITHOUT_EFFECT = {"out"}
"""Options that say where a result lies, and not what it is."""


def command_line(without: str | None = None) -> str:
    """The command as it was typed, maybe without an option and its value."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    if without in words:
        place = words.index(without)
        del words[place : place + 2]
    return shlex.join(word for word in words if not (without and word.startswith(f"{without}=")))


def command_words(name: str, *options: Any) -> str:
    """`ttmark eval NAME` with those options of some dataclasses that differ from their defaults."""
    words = ["ttmark", "eval", name]
    for given in options:
        for field in fields(given):
            value = getattr(given, field.name)
            if value != field.default and field.name not in WITHOUT_EFFECT:
                words += _words(field, value)
    return shlex.join(words)


def _words(field: "Field[Any]", value: Any) -> list[str]:
    """One option as it is typed; `shared.commands_of_dataclasses.command_of` makes options of fields."""
    declared = [info for info in get_args(field.type)[1:] if isinstance(info, ParameterInfo)]
    if any(isinstance(info, ArgumentInfo) for info in declared):
        return [str(value)]
    # In an annotation what stands first is the option's name, though Typer calls it the default.
    places = [place for info in declared for place in (info.default, *(info.param_decls or ()))]
    names = [place for place in places if isinstance(place, str)]
    option = names[0] if names else "--" + field.name.replace("_", "-")
    if isinstance(value, bool):
        return [option if value else option.replace("--", "--no-", 1)]
    values = value if isinstance(value, tuple) else (value,)
    return [word for one in values for word in (option, str(one))]
