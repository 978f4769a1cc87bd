"""The sampling that a model's `generation_config.json` asks for."""

from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from ttmark.services.runtime import StartupError
from ttmark.shared.schemas.sampling import SamplingDefaults

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
