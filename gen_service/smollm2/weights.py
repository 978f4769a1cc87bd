"""The weights of a Llama in GGUF, under the names and in the order that transformers gives them."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ttmark.gen_service.smollm2.gguf_file import GGUFFile

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
    for name, values in file.tensors():
        part = name.removesuffix(".weight").split(".")[-1]
        if part in heads:
            values = _halves(values, heads[part])
        yield transformers_name(name), torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)


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
