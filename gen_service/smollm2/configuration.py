"""The small files of a model folder, from a GGUF file's metadata."""

from typing import Any

from ttmark.gen_service.smollm2.gguf_file import GGUFFile


def model_config(file: GGUFFile) -> dict[str, Any]:
    """`config.json` of `LlamaForCausalLM`."""
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
        **_special_ids(file),
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


def _special_ids(file: GGUFFile) -> dict[str, Any]:
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    return {f"{name}_token_id": file[f"tokenizer.ggml.{ours}_token_id"] for name, ours in names.items()}
