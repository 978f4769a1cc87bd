"""The table of settings in the operations guide, from the settings classes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from ttmark.services.settings import DetectionSettings, GenerationSettings
from ttmark.services.settings_canary import CanarySettings
from ttmark.services.settings_keys import KeyStoreSettings

READERS: dict[str, tuple[type[BaseSettings], ...]] = {
    "generation": (GenerationSettings, KeyStoreSettings),
    "detection": (DetectionSettings, KeyStoreSettings),
    "canary": (CanarySettings,),
    "commands": (KeyStoreSettings,),
}


def settings_table() -> str:
    """Markdown: variable, default, who reads it, meaning; a setting with two defaults has two lines."""
    lines = ["| variable | default | read by | meaning |", "|---|---|---|---|"]
    rows: dict[tuple[str, str, str], list[str]] = {}
    for reader, classes in READERS.items():
        for name, field in _fields(classes):
            key = (f"TTMARK_{name.upper()}", _default(field), str(field.description))
            readers = rows.setdefault(key, [])
            readers += [] if reader in readers else [reader]
    for (variable, default, meaning), readers in sorted(rows.items()):
        lines.append(f"| `{variable}` | {default} | {', '.join(readers)} | {_meaning(meaning, variable)} |")
    return "\n".join(lines) + "\n"


def _fields(classes: tuple[type[BaseSettings], ...]) -> Iterator[tuple[str, FieldInfo]]:
    for settings in classes:
        yield from settings.model_fields.items()


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if value in (None, (), ""):
        return ""
    if isinstance(value, tuple):
        value = ",".join(value)
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value.as_posix() if isinstance(value, Path) else value}`"


def _meaning(meaning: str, variable: str) -> str:
    for settings in {cls for classes in READERS.values() for cls in classes}:
        field = settings.model_fields.get(variable.removeprefix("TTMARK_").lower())
        choices = get_args(field.annotation) if field else ()
        if choices and all(isinstance(choice, str) for choice in choices):
            return f"{meaning} One of {', '.join(choices)}.".replace("|", "\\|")
    return meaning.replace("|", "\\|")
