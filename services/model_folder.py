"""The folder of a model: found by what the user calls it; its chat template and the sampling it asks for."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.smollm2 import SMOLLM2
from ttmark.services.smollm2 import is_whole, smollm2_folder
from ttmark.services.startup import StartupError, no_start_after
from ttmark.services.state_folder import STATE_FOLDER
from ttmark.shared.schemas.generation.sampling import SamplingDefaults

if TYPE_CHECKING:
    from ttmark.gen_service.api.conversation.chat_template import ChatTemplate

DEMO = "demo"
BY_NAME = (DEMO, SMOLLM2)
_HUB_ID = re.compile(r"[\w-][\w.-]{0,95}/[\w.-]{1,96}")


def default_model(state: Path) -> str:
    """`smollm2` where it lies in the state folder, else `demo`."""
    return SMOLLM2 if is_whole(smollm2_folder(state)) else DEMO


def is_folder(name: str) -> bool:
    """Whether there is a folder of that name; a name too long for any is none."""
    try:
        return Path(name).is_dir()
    except OSError:
        return False


def check_model(model: str) -> str:
    """The model.

    Raises:
        ValueError: it is nothing that `resolve_model` knows.
    """
    if model not in BY_NAME and not is_folder(model) and not _HUB_ID.fullmatch(model):
        raise ValueError("a model is demo, smollm2, a folder that is there, or a hub id such as owner/name")
    return model


def model_id(model: str) -> str:
    """The name under which a model is served: `demo`, `smollm2`, a folder's name, or the hub id.

    What begins with / is a folder, be it one that only the generation service's container has.
    """
    if model.startswith("/") or (model not in BY_NAME and is_folder(model)):
        return Path(model).resolve().name
    return model


def resolve_model(model: str, state: Path = STATE_FOLDER) -> Path:
    """The folder of `demo`, of `smollm2` in the state folder, of a path, or of a hub id, which is fetched
    unless it is in the local cache.

    Raises:
        StartupError: no such folder, or the hub has no such model or cannot be reached.
    """
    if model == DEMO:
        return DEMO_MODEL_PATH
    if model == SMOLLM2:
        folder = smollm2_folder(state)
        if not is_whole(folder):
            raise StartupError(
                f"model {SMOLLM2} is not in {folder}; `ttmark models get {SMOLLM2}` puts it there"
            )
        return folder
    if is_folder(model):
        return Path(model)
    if not _HUB_ID.fullmatch(model):
        raise StartupError(f"unknown model {model!r}: neither a folder nor a hub id such as owner/name")
    # Imported here: the detection service has no need of it.
    from ttmark.gen_service.hub import NotOnHub, hub_folder

    with no_start_after(NotOnHub):
        return hub_folder(model)


def read_chat_template(folder: Path) -> "ChatTemplate | None":
    """From `chat_template.jinja`, else from `tokenizer_config.json`, as Hugging Face tokenizers store it,
    with that for tools, if there is one.

    Raises:
        StartupError: a file is damaged, or the template has a syntax error.
    """
    # Imported here: the whole generation service comes with it, which `has_chat_template` can do without.
    from ttmark.gen_service.api.conversation.chat_template import ChatTemplate

    with _usable(folder):
        named, config = _read(folder)
        source = named.get("default")
        return ChatTemplate(source, _special_tokens(config), named.get("tool_use", "")) if source else None


def has_chat_template(folder: Path) -> bool:
    """Whether there is one, whatever it says.

    Raises:
        StartupError: a file is damaged.
    """
    with _usable(folder):
        return bool(_read(folder)[0].get("default"))


def _read(folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    config_file, further = folder / "tokenizer_config.json", folder / "additional_chat_templates"
    config = orjson.loads(config_file.read_bytes()) if config_file.is_file() else {}
    files = {"default": folder / "chat_template.jinja", "tool_use": further / "tool_use.jinja"}
    named = {name: file.read_text("utf-8") for name, file in files.items() if file.is_file()}
    return named or named_templates(config.get("chat_template")), config


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # JSON, UTF-8 and template errors alike
        raise StartupError(f"{folder}: the chat template cannot be used: {error}") from error


def named_templates(value: Any) -> dict[str, str]:
    """Templates by name: transformers holds one alone, or several by name, which files list."""
    if isinstance(value, list):
        value = {entry["name"]: entry["template"] for entry in value}
    named = value if isinstance(value, dict) else {"default": value}
    return {name: source for name, source in named.items() if isinstance(source, str)}


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    tokens = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            tokens[name] = text
    return tokens


_WAY_OUT = "correct it, or set TTMARK_GENERATION_DEFAULTS=openai"


def read_sampling_defaults(folder: Path) -> SamplingDefaults:
    """What `generation_config.json` says, and OpenAI's defaults where it says nothing or is not there.

    `do_sample` and a temperature of 0 are left aside: no text is greedy, and so without a mark, by default.

    Raises:
        StartupError: the file cannot be read, or a value is none that a request could name.
    """
    file = folder / "generation_config.json"
    try:
        said = orjson.loads(file.read_bytes()) if file.is_file() else {}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StartupError(f"{file} cannot be read: {reason}; {_WAY_OUT}") from error
    if not isinstance(said, dict):
        raise StartupError(f"{file} must hold a JSON object; {_WAY_OUT}")
    named = {name: value for name in SamplingDefaults.model_fields if (value := said.get(name)) is not None}
    if _is(named.get("temperature"), 0):
        del named["temperature"]
    if _is(named.get("top_k"), -1):
        named["top_k"] = 0
    try:
        return SamplingDefaults.model_validate(named)
    except ValidationError as error:
        (first, *_) = error.errors()
        raise StartupError(f"{file}: {first['loc'][0]}: {first['msg']}; {_WAY_OUT}") from error


def _is(value: Any, number: int) -> bool:
    return not isinstance(value, bool) and bool(value == number)
