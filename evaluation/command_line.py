"""The command that makes a result again."""

import shlex
import sys
from pathlib import Path


def command_line(without: str | None = None) -> str:
    """The command as it was typed, maybe without an option and its value."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    if without in words:
        place = words.index(without)
        del words[place : place + 2]
    return shlex.join(word for word in words if not (without and word.startswith(f"{without}=")))
