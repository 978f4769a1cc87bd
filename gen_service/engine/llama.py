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

from ttmark.gen_service.engine.attention import AttentionPlan, attend
from ttmark.gen_service.engine.matrix import Matrix
from ttmark.gen_service.engine.native import Kernels

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
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._epsilon: float = config.rms_norm_eps
        self._activation = model.model.layers[0].mlp.act_fn
        self._embedding: torch.Tensor = model.model.embed_tokens.weight
        self._head = matrix(_head(model))
        self._norm: torch.Tensor = model.model.norm.weight.detach()
        self._layers = [_fuse(layer, matrix) for layer in model.model.layers]
        self._dim: int = model.model.layers[0].self_attn.head_dim
        suited = kernels is not None and Kernels.suit(model.dtype, self._dim)
        self._kernels = kernels if suited else None
        self._gate_kernel = self._kernels if _is_gate(model) else None
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
        return self._heads // self._kv_heads

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, plan: AttentionPlan) -> torch.Tensor:
        """What the last layer leaves [rows, width], not yet normalised."""
        hidden = self._embedding[tokens]  # [rows, width]
        turns = self._turns(positions)
        for index, layer in enumerate(self._layers):
            normed = self._normalize(hidden, layer.attention_norm)
            attended = self._attention(index, layer, normed, turns, plan)
            hidden = layer.output.added_to(hidden, attended)
            gate_up = layer.gate_up(self._normalize(hidden, layer.feed_norm))
            hidden = layer.down.added_to(hidden, self._gated(gate_up))
        return hidden

    def logits(self, hidden: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        """[len(keep), vocab] of the rows `keep` of `hidden`."""
        return self._head(self._normalize(hidden[keep], self._norm))

    def _attention(
        self, index: int, layer: _Layer, normed: torch.Tensor, turns: torch.Tensor, plan: AttentionPlan
    ) -> torch.Tensor:
        """[rows, width] -> [rows, heads * dim]"""
        rows, dim = normed.shape[0], self._dim
        packed = layer.query_key_value(normed)
        if layer.bias is not None:
            packed += layer.bias
        turned = self._heads + self._kv_heads
        if self._kernels is None:
            _turn(packed[:, : turned * dim].view(rows, turned, dim), turns)
        else:
            self._kernels.turn(packed, turns, turned, dim)
        query, key_value = packed.split_with_sizes([self._heads * dim, 2 * self._kv_heads * dim], dim=1)
        return attend(
            plan,
            index,
            query.view(rows, self._heads, dim),
            key_value.view(rows, 2, self._kv_heads, dim),
            scale=dim**-0.5,
            window=layer.window,
        )

    def _gated(self, gate_up: torch.Tensor) -> torch.Tensor:
        """[rows, 2 * inner] -> [rows, inner]"""
        if self._gate_kernel is not None:
            return self._gate_kernel.gate(gate_up)
        gate, up = gate_up.chunk(2, dim=1)
        gated: torch.Tensor = self._activation(gate)
        return gated.mul_(up)

    def _turns(self, positions: torch.Tensor) -> torch.Tensor:
        """What the queries and keys of each row are multiplied with: complex [rows, 1, dim / 2]."""
        angles = positions.float()[:, None] * self._frequencies
        return torch.polar(torch.full_like(angles, self._rotary_scale), angles)[:, None]

    def _normalize(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMS normalisation of [rows, width]."""
        if self._kernels is not None:
            return self._kernels.normalise(hidden, weight, self._epsilon)
        return functional.rms_norm(hidden, weight.shape, weight, self._epsilon)


def _turn(heads: torch.Tensor, turns: torch.Tensor) -> None:
    """Rotates [rows, heads, dim] in place and leaves real and imaginary parts side by side.

    In the model the parts lie in the two halves of a head; queries and keys alike may be permuted.
    """
    rows, count, dim = heads.shape
    real, imaginary = heads.view(rows, count, 2, dim // 2).float().unbind(2)
    pairs = heads.view(rows, count, dim // 2, 2)
    turned = torch.complex(real, imaginary).mul_(turns)
    pairs.copy_(torch.view_as_real(turned))


def _is_gate(model: Any) -> bool:
    """Whether the feed-forward layers are gated by SiLU, of a width that the kernel takes."""
    config = model.config
    return config.hidden_act in ("silu", "swish") and config.intermediate_size % Kernels.GATE_MULTIPLE == 0


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
