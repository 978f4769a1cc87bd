"""The list of settings in the operations guide."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from ttmark.services.features.canary.settings import CanarySettings
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.settings.unknown_variables import of_features

TOPICS: tuple[tuple[str, str], ...] = (
    (
        "Addresses and ports",
        r"host|(gen|detect|canary)_port|cors_origins|console_url|playground|trusted_proxies",
    ),
    ("Model and tokenizers", r"model|tokenizers|engine|engine_file|dtype|quantization|threads|state"),
    ("Key store and secrets", r"store_url.*|kek.*|default_key|key_.*|ledger_file|replica_id"),
    (
        "What is marked and said",
        r"policy_file|opening_bits|detectability_.*|generation_defaults|control_tokens|unknown_fields|reasoning",
    ),
    ("Labels and manifests", r"label.*|aigc_.*|c2pa_.*|signpost"),
    ("Capacity of generation", r"max_concurrency|max_branches|reproducible"),
    ("Reading along", r"reader_.*"),
    ("Work of detection", r"workers|blocks_.*|max_request_blocks|max_document_tokens"),
    ("Files", r"extract_.*"),
    ("Limits of requests", r"requests_.*|tokens_per_.*|max_.*|request_seconds|drain_.*"),
    ("Evidence that is spent", r"answers_.*|chance_findings"),
    ("Jobs and webhooks", r"jobs?_.*|webhook_.*"),
    ("Cases", r"case_key_file"),
    ("Public page", r"public.*"),
    ("Sign-in by an OpenID provider", r"oidc_.*"),
    ("Audit, logs, traces", r"audit_.*|log_level|traces_endpoint"),
    ("Canary", r"(gen|detect)_url|token|token_file"),
)
"""Headings of the settings page, and which fields stand under each: the first that matches."""

OTHERS = "Others"


def topic(field: str) -> str:
    """The heading of a setting, by its name without `TTMARK_`, in small letters."""
    return next((title for title, fields in TOPICS if re.fullmatch(fields, field)), OTHERS)


def headings() -> tuple[str, ...]:
    """In the order of the page."""
    return (*(title for title, _ in TOPICS), OTHERS)


_OF_ALL: tuple[type[BaseSettings], ...] = (KeyStoreSettings, *of_features("ttmark.services.features"))
READERS: dict[str, tuple[type[BaseSettings], ...]] = {
    "generation": (GenerationSettings, *_OF_ALL, *of_features("ttmark.gen_service.features")),
    "detection": (DetectionSettings, *_OF_ALL, *of_features("ttmark.detect_service.features")),
    "canary": (CanarySettings,),
    "commands": _OF_ALL,
}
SHORT = {
    "generation, detection": "both",
    "generation, detection, commands": "both, commands",
    ", ".join(READERS): "all",
}
"""Readers in fewer words; the page says which."""


def settings_table() -> str:
    """Markdown: a list for each topic, a line for each setting: variable, default, who reads it, meaning.

    Where services have other defaults or meanings for one, its line says which is whose.
    """
    fields: dict[str, dict[str, FieldInfo]] = {}
    for reader, classes in READERS.items():
        for name, field in _fields(classes):
            fields.setdefault(name, {}).setdefault(reader, field)
    text = ""
    for title in headings():
        names = [name for name in sorted(fields) if topic(name) == title]
        if names:
            whose = {_readers(fields[name]) for name in names}
            one = whose.pop() if len(whose) == 1 else ""
            lines = [_line(name, fields[name], told=bool(one)) for name in names]
            text += f"## {title}\n\n{f'Of {one}.' + 2 * chr(10) if one else ''}{''.join(lines)}\n"
    return text


def _readers(readers: Iterable[str]) -> str:
    """Who reads a setting, as the page names them."""
    names = ", ".join(readers)
    return SHORT.get(names, names)


def _line(name: str, readers: dict[str, FieldInfo], *, told: bool) -> str:
    """A line of the list.

    Args:
        told: whether the heading says who reads it.
    """
    variable = f"TTMARK_{name.upper()}"
    defaults = _whose({reader: _default(field) for reader, field in readers.items()})
    meanings = _whose({reader: str(field.description) for reader, field in readers.items()})
    meaning = _meaning(meanings, variable)
    if re.fullmatch(r"`[^`]*`", defaults):
        variable, defaults = f"{variable}={defaults.strip('`')}", ""
    said = "; ".join(filter(None, ("" if told else _readers(readers), defaults and f"default {defaults}")))
    return f"- `{variable}`{f' ({said})' if said else ''}: {meaning}\n"


def _whose(said: dict[str, str]) -> str:
    """What all readers say, or what each of them says."""
    readers: dict[str, list[str]] = {}
    for reader, words in said.items():
        readers.setdefault(words, []).append(reader)
    if len(readers) == 1:
        return next(iter(readers))
    return " ".join(f"{', '.join(names).capitalize()}: {words}" for words, names in readers.items())


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
        words = choices if all(isinstance(choice, str) for choice in choices) else ()
        if not all(f"`{word}`" in meaning for word in words):
            return f"{meaning} One of {', '.join(words)}."
    return meaning
