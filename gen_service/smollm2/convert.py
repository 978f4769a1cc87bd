"""From SmolLM2's GGUF file to a folder that transformers and our engine load.

`python -m ttmark.gen_service.smollm2.convert GGUF FOLDER` prints a line for each share that is done.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch
from gguf import GGUFReader, dequantize
from numpy.typing import NDArray
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from torch import Tensor

from ttmark.gen_service import smollm2
from ttmark.gen_service.smollm2 import write_generation_config


class GGUFFile(GGUFReader):
    """A GGUF file, read through a memory map that stays open as long as this object."""

    def __getitem__(self, key: str) -> Any:
        """A value of the metadata.

        Raises:
            KeyError: the file has no such key.
        """
        return self.fields[key].contents()


def convert(gguf: Path, folder: Path, progress: Callable[[float], None] = lambda _: None) -> None:
    """Writes bf16 safetensors, tokenizer, configuration, chat template and model card into `folder`.

    Args:
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
        progress(len(weights) / (len(file.tensors) + 1))
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


def model_config(file: GGUFFile) -> dict[str, Any]:
    heads, width = file["llama.attention.head_count"], file["llama.embedding_length"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "vocab_size": file["llama.vocab_size"],
        "hidden_size": width,
        "intermediate_size": file["llama.feed_forward_length"],
        "num_hidden_layers": file["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": file["llama.attention.head_count_kv"],
        "head_dim": width // heads,
        "max_position_embeddings": file["llama.context_length"],
        "rms_norm_eps": round(file["llama.attention.layer_norm_rms_epsilon"], 12),
        "rope_parameters": {"rope_type": "default", "rope_theta": file["llama.rope.freq_base"]},
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": file["tokenizer.ggml.bos_token_id"],
        "eos_token_id": file["tokenizer.ggml.eos_token_id"],
        "pad_token_id": file["tokenizer.ggml.padding_token_id"],
    }


def tokenizer_config(file: GGUFFile) -> dict[str, Any]:
    """`tokenizer_config.json`, the chat template apart."""
    tokens = file["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": file["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "bos_token": tokens[file["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[file["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[file["tokenizer.ggml.padding_token_id"]],
        "unk_token": tokens[file["tokenizer.ggml.unknown_token_id"]],
    }


_CONTROL = 3  # GGUF's token type of special tokens


def smollm_tokenizer(file: GGUFFile) -> Tokenizer:
    """Vocabulary and merges of the file, with the pre-tokenizer that it names.

    Each digit is a piece of its own. The tokenizer that transformers 5 makes of the same file leaves that
    out, and reads two spaces before a number otherwise than the model has seen them in training.

    Raises:
        ValueError: the file names another tokenizer.
    """
    kind = (file["tokenizer.ggml.model"], file["tokenizer.ggml.pre"])
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"the file's tokenizer is {'/'.join(kind)}, not gpt2/smollm")
    tokens = file["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in file["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE({token: number for number, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = ByteLevelDecoder()
    types = file["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, type_ in zip(tokens, types, strict=True)
            if type_ == _CONTROL
        ]
    )
    return tokenizer


_OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
_INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def llama_weights(file: GGUFFile) -> Iterator[tuple[str, Tensor]]:
    """Name and bf16 weights of each tensor. The output layer is the embedding, which is there once.

    Raises:
        KeyError: a tensor that this architecture does not have.
    """
    heads = {"attn_q": file["llama.attention.head_count"], "attn_k": file["llama.attention.head_count_kv"]}
    for tensor in file.tensors:
        part = tensor.name.removesuffix(".weight").split(".")[-1]
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)  # rows first
        if part in heads:
            values = _halves(values, heads[part])
        weights = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
        yield transformers_name(tensor.name), weights


def transformers_name(name: str) -> str:
    """`blk.3.attn_q.weight` becomes `model.layers.3.self_attn.q_proj.weight`.

    Raises:
        KeyError: the architecture has no such tensor.
    """
    match name.split("."):
        case ["blk", layer, part, "weight"]:
            return f"model.layers.{layer}.{_INNER[part]}.weight"
        case [part, "weight"]:
            return f"{_OUTER[part]}.weight"
    raise KeyError(name)


def _halves(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of a projection as transformers rotates them, the two halves of a head with each other.

    GGUF keeps the two rows of a rotation beside each other.
    """
    pairs = values.reshape(heads, -1, 2, values.shape[1])  # [heads, head_dim / 2, 2, hidden]
    return pairs.swapaxes(1, 2).reshape(values.shape)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]), lambda share: print(f"{smollm2.SHARE}{share}", flush=True))
