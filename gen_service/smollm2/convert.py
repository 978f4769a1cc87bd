"""From the GGUF file to a folder that transformers and our engine load."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from safetensors.torch import save_file

from ttmark.gen_service import smollm2
from ttmark.gen_service.smollm2.configuration import model_config, tokenizer_config
from ttmark.gen_service.smollm2.gguf_file import GGUFFile
from ttmark.gen_service.smollm2.sampling import write_generation_config
from ttmark.gen_service.smollm2.tokenizer import smollm_tokenizer
from ttmark.gen_service.smollm2.weights import llama_weights


def convert(gguf: Path, folder: Path, progress: Callable[[float], None] = lambda _: None) -> None:
    """Writes bf16 safetensors, tokenizer, configuration, chat template and model card into `folder`.

    Args:
        gguf: the file.
        folder: exists and is empty.
        progress: is told the share that is done.

    Raises:
        ValueError, KeyError: the file is not the one that this conversion is for.
        OSError: the folder cannot be written.
    """
    file = GGUFFile(gguf)
    weights = {}
    for name, tensor in llama_weights(file):
        weights[name] = tensor
        progress(len(weights) / (len(file) + 1))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    smollm_tokenizer(file).save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(file["tokenizer.chat_template"])
    _write(folder / "config.json", model_config(file))
    # The library lets the owner alone read it; containers run as somebody else.
    (folder / "model.safetensors").chmod((folder / "config.json").stat().st_mode)
    write_generation_config(folder)
    _write(folder / "tokenizer_config.json", tokenizer_config(file))
    card = Path(__file__).with_name("card.md").read_text()
    (folder / "README.md").write_text(card.format_map(vars(smollm2)))
    progress(1)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
