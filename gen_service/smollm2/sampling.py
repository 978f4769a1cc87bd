"""How SmolLM2 answers where a request names no sampling: `generation_config.json`."""

from pathlib import Path
from typing import Any

import orjson

FILE = "generation_config.json"
SAMPLING: dict[str, Any] = {
    "temperature": 0.6,
    "top_p": 0.92,
    "top_k": 50,
    "repetition_penalty": 1.1,
    "max_new_tokens": 1024,
}
"""Answers that make sense, do not go round in circles, end, and have choice enough to carry a mark.

Where it changes, folders that were made before are brought up to date.
"""

_SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")


def write_generation_config(folder: Path) -> None:
    """Writes the sampling and, from the folder's `config.json`, the tokens that begin and end a text."""
    config = orjson.loads((folder / "config.json").read_bytes())
    said = {name: config[name] for name in _SPECIAL} | {"do_sample": True} | SAMPLING
    (folder / FILE).write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n")
