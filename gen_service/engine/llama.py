"""The forward pass of Llama and its relatives in a tenth of the operations, over the same weights.

transformers spends most of a small pass on the overhead of hundreds of small operations. Here projections
that read the same input are one product, residuals are added by the product that makes them, queries and keys
are turned as complex numbers in place, and nothing is transposed for the attention function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch.nn import functional
from transformers import LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM
from transformers.models.mistral.modeling_mistral import MistralAttention

from ttmark.gen_service.engine.attention import AttentionPlan
from ttmark.gen_service.engine.native.kernels import Kernels
from ttmark.gen_service.engine.operations import (
    CompiledOperations,
    Matrix,
    Operations,
    Shape,
    TorchOperations,
)

_RELATIVES = (LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM)


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of one layer."""

    attention_norm: torch.Tensor
    query_key_value: Matrix
    bias: torch.Tensor | None
    output: Matrix
    feed_norm: torch.Tensor
    gate_up: Matrix
    down: Matrix
    window: int | None


class FusedLlama:
    """Computes what the model computes, up to rounding.

    Args:
        packed: whether matrices are packed for oneDNN, which is a second copy of the weights.
        kernels: compute what lies between the products; None, or where they do not suit: torch does.
    """

    def __init__(self, model: Any, *, packed: bool = False, kernels: Kernels | None = None) -> None:
        matrix = Matrix.pack if packed else Matrix
        config = model.config
        self._activation = model.model.layers[0].mlp.act_fn
        self._embedding: torch.Tensor = model.model.embed_tokens.weight
        self._head = matrix(_head(model))
        self._norm: torch.Tensor = model.model.norm.weight.detach()
        self._layers = [_fuse(layer, matrix) for layer in model.model.layers]
        self._shape = Shape(
            config.num_attention_heads,
            config.num_key_value_heads,
            model.model.layers[0].self_attn.head_dim,
            config.rms_norm_eps,
        )
        self._kernels = kernels if _suits_kernels(model, self._shape.dim) else None
        rotary = model.model.rotary_emb
        self._frequencies: torch.Tensor = rotary.inv_freq
        self._rotary_scale: float = rotary.attention_scaling

    @staticmethod
    def suits(model: Any) -> bool:
        """Whether the model is of a kind that this class computes."""
        if type(model) not in _RELATIVES:
            return False
        layer = model.model.layers[0]
        biased = (layer.self_attn.o_proj, layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj)
        return model.lm_head.bias is None and all(linear.bias is None for linear in biased)

    def __call__(
        self, tokens: torch.Tensor, positions: torch.Tensor, keep: torch.Tensor, plan: AttentionPlan
    ) -> torch.Tensor:
        """Logits [len(keep), vocab] of the rows `keep` of a pass over tokens [rows] at positions [rows]."""
        return self.logits(self.hidden(tokens, positions, plan), keep)

    @property
    def products(self) -> list[torch.Tensor]:
        """The matrices of a pass [in, out], in its order."""
        of_layers = ((each.query_key_value, each.output, each.gate_up, each.down) for each in self._layers)
        return [matrix.plain for matrix in (*chain.from_iterable(of_layers), self._head)]

    @property
    def windows(self) -> set[int | None]:
        """The sliding windows of the layers."""
        return {layer.window for layer in self._layers}

    @property
    def groups(self) -> int:
        """Query heads per KV head."""
        return self._shape.heads // self._shape.kv_heads

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, plan: AttentionPlan) -> torch.Tensor:
        """What the last layer leaves [rows, width], not yet normalised."""
        hidden = self._embedding[tokens]  # [rows, width]
        between = self._operations(positions, plan)
        for index, layer in enumerate(self._layers):
            packed = layer.query_key_value(between.normalise(hidden, layer.attention_norm))
            if layer.bias is not None:
                packed += layer.bias
            hidden = layer.output.added_to(hidden, between.attend(index, packed, layer.window))
            gate_up = layer.gate_up(between.normalise(hidden, layer.feed_norm))
            hidden = layer.down.added_to(hidden, between.gate(gate_up))
        return hidden

    def logits(self, hidden: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        """[len(keep), vocab] of the rows `keep` of `hidden`."""
        return self._head(
            functional.rms_norm(hidden[keep], self._norm.shape, self._norm, self._shape.epsilon)
        )

    def _operations(self, positions: torch.Tensor, plan: AttentionPlan) -> Operations:
        turns = self._turns(positions)
        if self._kernels is not None and plan.kernel is not None and not plan.chunks:
            return CompiledOperations(plan, self._shape, turns, self._kernels)
        return TorchOperations(plan, self._shape, turns, self._activation, self._kernels)

    def _turns(self, positions: torch.Tensor) -> torch.Tensor:
        """What the queries and keys of each row are multiplied with: complex [rows, 1, dim / 2]."""
        angles = positions.float()[:, None] * self._frequencies
        return torch.polar(torch.full_like(angles, self._rotary_scale), angles)[:, None]


def _suits_kernels(model: Any, dim: int) -> bool:
    """Whether the compiled operations compute this model: its activation is SiLU, its sizes are theirs."""
    config = model.config
    gated = config.hidden_act in ("silu", "swish") and config.intermediate_size % Kernels.GATE_MULTIPLE == 0
    return gated and Kernels.suit(model.dtype, dim)


def _fuse(layer: Any, matrix: Callable[[torch.Tensor], Matrix]) -> _Layer:
    attention, feed = layer.self_attn, layer.mlp
    query_key_value = (attention.q_proj, attention.k_proj, attention.v_proj)
    biases = [linear.bias for linear in query_key_value if linear.bias is not None]
    return _Layer(
        attention_norm=layer.input_layernorm.weight.detach(),
        query_key_value=matrix(_share(*query_key_value)),
        bias=torch.cat(biases) if biases else None,
        output=matrix(_share(attention.o_proj)),
        feed_norm=layer.post_attention_layernorm.weight.detach(),
        gate_up=matrix(_share(feed.gate_proj, feed.up_proj)),
        down=matrix(_share(feed.down_proj)),
        window=_window(attention),
    )


@torch.no_grad()
def _head(model: Any) -> torch.Tensor:
    """[width, vocab]; where it is tied to the embedding, which is read by rows, a CPU gets a copy."""
    weight = model.lm_head.weight
    if weight is not model.model.embed_tokens.weight:
        return _share(model.lm_head)
    transposed: torch.Tensor = weight.t()
    return transposed.contiguous() if _prefers_inputs_first(weight) else transposed.detach()


def _prefers_inputs_first(weight: torch.Tensor) -> bool:
    """Whether a few rows are faster times a matrix [in, out]: by half on a CPU in float32."""
    return weight.device.type == "cpu" and weight.dtype == torch.float32


def _window(attention: Any) -> int | None:
    """The sliding window of a layer: Mistral has one for all layers, Qwen2 one for each."""
    owner = attention.config if isinstance(attention, MistralAttention) else attention
    window: int | None = getattr(owner, "sliding_window", None)
    return window


@torch.no_grad()
def _share(*linears: Any) -> torch.Tensor:
    """The weights side by side [in, outs]; the modules keep views of them, so that no copy stays."""
    weights = [linear.weight for linear in linears]
    if _prefers_inputs_first(weights[0]):
        shared = torch.cat([weight.t() for weight in weights], dim=1)
    else:
        shared = torch.cat(weights).t()
    start = 0
    for weight in weights:
        weight.data = shared[:, start : start + len(weight)].t()
        start += len(weight)
    return shared
