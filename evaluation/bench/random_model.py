"""Models with random weights and a working tokenizer: speed does not depend on what the weights say."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig

END_OF_TEXT = "<|end|>"
_TEXT = "The quick brown fox jumps over the lazy dog, naïve café owners sigh: 日本語 and 🦊 too. "


def byte_tokenizer() -> Tokenizer:
    """A byte-level BPE tokenizer with a few merges; id 0 ends a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([_TEXT], trainer)
    return tokenizer


def save_random_model(
    folder: Path, config: PreTrainedConfig, seed: int = 0, *, logit_spread: float | None = None
) -> None:
    """Writes a model of the given shape and a byte-level tokenizer, as `AutoModelForCausalLM` loads them.

    Args:
        logit_spread: standard deviation of the logits of a position, for a model with a final `norm`. Speed
            depends on it, as the number of likely tokens does. None leaves what the initialisation gives.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    model: Any = AutoModelForCausalLM.from_config(config)
    if logit_spread is not None:
        head = model.get_output_embeddings().weight.detach()
        model.model.norm.weight.data.fill_(logit_spread / float(head.norm(dim=1).mean()))
    model.save_pretrained(folder)
    byte_tokenizer().save(str(folder / "tokenizer.json"))


LIKE_A_LANGUAGE_MODEL = 5.0
"""Spread of 49,152 normal logits that leaves as many candidates as the demo model's: about 28 at (50, 0.95,
T 1) and 3 at (20, 0.8, T 0.7)."""


def llama_135m() -> LlamaConfig:
    """The shape of a 135M-parameter Llama (30 layers of width 576, tied embeddings)."""
    return LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=None,
    )
