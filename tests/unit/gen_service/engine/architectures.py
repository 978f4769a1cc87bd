"""Small models of many architectures, and a runner that computes every piece from the first token."""

from collections.abc import Sequence
from typing import Any

import torch
import transformers

from tests.harness.random_model import SMALL, TOKENS
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe
from ttmark.gen_service.engine.model.transformers_model import ATTENTION_NAME

# Tied random weights only echo the last token.
WEIGHTS: dict[str, Any] = {"initializer_range": 0.3, "tie_word_embeddings": False}
_SHAPE: dict[str, Any] = {**SMALL, **WEIGHTS, "hidden_size": 64, "intermediate_size": 96}
_HEADS: dict[str, Any] = {**_SHAPE, "head_dim": 16}
_WINDOWS: dict[str, Any] = {
    **_HEADS,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "full_attention"],
}
_EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}

SERVED: dict[str, transformers.PreTrainedConfig] = {
    "Llama": transformers.LlamaConfig(**_SHAPE),
    "Mistral": transformers.MistralConfig(**_SHAPE, sliding_window=16),
    "Qwen 2": transformers.Qwen2Config(**_SHAPE),
    "Qwen 3": transformers.Qwen3Config(**_HEADS),
    "Qwen 3 MoE": transformers.Qwen3MoeConfig(**_HEADS, **_EXPERTS, num_experts=4),
    "Gemma 3": transformers.Gemma3TextConfig(**_WINDOWS),
    "gpt-oss": transformers.GptOssConfig(**_WINDOWS, num_local_experts=4, num_experts_per_tok=2),
    "DeepSeek V3": transformers.DeepseekV3Config(
        **_SHAPE | {"num_key_value_heads": 4},
        **_EXPERTS,
        qk_nope_head_dim=16,
        qk_rope_head_dim=16,
        v_head_dim=24,
        kv_lora_rank=16,
        q_lora_rank=24,
        n_routed_experts=8,
        n_group=4,
        topk_group=2,
        first_k_dense_replace=1,
    ),
    "Mixtral": transformers.MixtralConfig(**_SHAPE, num_local_experts=4, num_experts_per_tok=2),
    "Phi 3": transformers.Phi3Config(**_SHAPE),
    "SmolLM 3": transformers.SmolLM3Config(**_SHAPE),
    "OLMo 2": transformers.Olmo2Config(**_SHAPE),
    "Granite": transformers.GraniteConfig(**_SHAPE),
    "Cohere 2": transformers.Cohere2Config(**_WINDOWS),
    "GLM 4": transformers.Glm4Config(**_HEADS),
    "GPT-2": transformers.GPT2Config(
        **TOKENS, n_embd=64, n_layer=2, n_head=4, n_positions=256, initializer_range=0.3
    ),
    "GPT-NeoX": transformers.GPTNeoXConfig(**_SHAPE),
}


class SlowRunner:
    """What an engine's runner computes, by transformers' own attention, from the first token on."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._tokens: dict[int, int] = {}  # by cache row

    def move(self, source: int, target: int, length: int) -> None:
        moved = [self._tokens[source + row] for row in range(length)]
        self._tokens.update(enumerate(moved, target))

    @torch.inference_mode()
    def forward(self, pieces: Sequence[Append | Probe]) -> list[torch.Tensor]:
        self._model.set_attn_implementation("eager")
        try:
            return [self._logits(piece) for piece in pieces]
        finally:
            self._model.set_attn_implementation(ATTENTION_NAME)

    def _logits(self, piece: Append | Probe) -> torch.Tensor:
        if isinstance(piece, Append):
            self._tokens.update(enumerate(piece.tokens, piece.base + piece.position))
            text = self._text(piece.base, piece.position + len(piece.tokens))
            return self._last(text)[None] if piece.wants_logits else torch.empty(0, 0)
        prefix = self._text(piece.base, piece.position)
        return torch.stack([self._last([*prefix, *path]) for path in piece.paths.tolist()])

    def _text(self, base: int, length: int) -> list[int]:
        return [self._tokens[base + position] for position in range(length)]

    def _last(self, tokens: list[int]) -> torch.Tensor:
        logits: torch.Tensor = self._model(
            input_ids=torch.tensor([tokens], device=self._model.device), use_cache=False
        ).logits
        return logits[0, -1].float()
