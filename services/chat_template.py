"""The chat template that a model folder carries, if any."""

from pathlib import Path
from typing import Any

import orjson

from ttmark.gen_service.api.chat_template import ChatTemplate
from ttmark.services.runtime import StartupError


def read_chat_template(folder: Path) -> ChatTemplate | None:
    """From `chat_template.jinja`, else from `tokenizer_config.json`, as Hugging Face tokenizers store it.

    Raises:
        StartupError: a file is damaged, or the template has a syntax error.
    """
    file, config_file = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    try:
        config = orjson.loads(config_file.read_bytes()) if config_file.is_file() else {}
        source = file.read_text() if file.is_file() else _default_template(config.get("chat_template"))
        return ChatTemplate(source, _special_tokens(config)) if source else None
    except ValueError as error:  # JSON, UTF-8 and template errors alike
        raise StartupError(f"{folder}: the chat template cannot be used: {error}") from error


def _default_template(value: Any) -> str | None:
    """Older files hold a list of named templates."""
    if isinstance(value, list):
        named = {entry["name"]: entry["template"] for entry in value}
        value = named.get("default")
    return value if isinstance(value, str) else None


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    tokens = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            tokens[name] = text
    return tokens
