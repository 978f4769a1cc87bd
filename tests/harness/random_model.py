"""Models with random weights and a working tokenizer."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig

from tests.harness.byte_tokenizers import trained_bytes

END_OF_TEXT = "<|end|>"
_TEXT = "The quick brown fox jumps over the lazy dog, naïve café owners sigh: 日本語 and 🦊 too. "


def byte_tokenizer() -> Tokenizer:
    """A byte-level BPE tokenizer with a few merges; id 0 ends a text."""
    return trained_bytes([_TEXT], 300, special_tokens=[END_OF_TEXT])


TOKENS: dict[str, Any] = {"vocab_size": 300, "bos_token_id": None, "eos_token_id": 0, "pad_token_id": None}
_SIZE = {"hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256}
SMALL = {**TOKENS, **_SIZE, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


def small_llama(**changes: Any) -> LlamaConfig:
    """The shape of a Llama of some ten thousand parameters, but for what is given."""
    return LlamaConfig(**SMALL | changes)


def save_random_model(folder: Path, config: PreTrainedConfig, seed: int = 0) -> None:
    """Writes a model of the given shape and a byte-level tokenizer, as `AutoModelForCausalLM` loads them."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    model: Any = AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
