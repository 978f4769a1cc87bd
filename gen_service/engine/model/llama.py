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

from ttmark.gen_service.engine.model.attention import AttentionPlan, adopt, attend, keep_probed
from ttmark.gen_service.engine.model.compiled_layers import CompiledLayers
from ttmark.gen_service.engine.native import AttentionCall, Kernels
from ttmark.gen_service.engine.native.grouped import GroupedMatrix

_MANY_ROWS = 16


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix that rows are multiplied with.

    oneDNN multiplies faster with a matrix that it has packed for its own kernels: in two thirds of the time
    in bf16 for any number of rows, in half of it in float32 for 2 to 32. One row in float32 is a sum over
    rows of the matrix, which the plain one does fastest. Where it packs none in bf16, many rows are
    multiplied in float32: 128 rows with a matrix of 1536 x 576 in a fifth of the time (AMD EPYC without
    AVX-512).

    Attributes:
        plain: [in, out], in any layout; None: only the packed one is needed.
        packed: the same for oneDNN; None: there is none.
    """

    plain: torch.Tensor | None
    packed: torch.Tensor | None = None

    @classmethod
    def pack(cls, plain: torch.Tensor) -> "Matrix":
        """A matrix that is packed: in float32 beside the plain one, else in its place.

        Raises:
            RuntimeError, AttributeError: oneDNN does not pack it on this machine.
        """
        packed = torch.ops.mkldnn._reorder_linear_weight(plain.t().contiguous(), None)
        return cls(plain if plain.dtype == torch.float32 else None, packed)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[rows, in] -> [rows, out]"""
        if (plain := self._plain_for(rows)) is not None:
            if _is_slow_in_bf16(rows):
                return (rows.float() @ plain.float()).to(rows.dtype)
            return rows @ plain
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, self.packed, None, "none", [], "")
        return product

    def added_to(self, residual: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """`residual` [rows, out] and the product of `rows` [rows, in]."""
        if (plain := self._plain_for(rows)) is not None:
            if _is_slow_in_bf16(rows):
                return torch.addmm(residual.float(), rows.float(), plain.float()).to(rows.dtype)
            return torch.addmm(residual, rows, plain)
        total: torch.Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            rows, residual, self.packed, None, "add"
        )
        return total

    def _plain_for(self, rows: torch.Tensor) -> torch.Tensor | None:
        return self.plain if self.packed is None or rows.shape[0] == 1 else None


def _is_slow_in_bf16(rows: torch.Tensor) -> bool:
    """Whether a plain product of so many rows takes longer than one in float32 with its conversions."""
    return rows.dtype == torch.bfloat16 and rows.device.type == "cpu" and rows.shape[0] >= _MANY_ROWS


MakesMatrix = Callable[[torch.Tensor], Matrix | GroupedMatrix]
Activation = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a model: query heads, KV heads, numbers of a head, epsilon of the normalisation."""

    heads: int
    kv_heads: int
    dim: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class TorchOperations:
    """The operations of any pass.

    Attributes:
        turns: what queries and keys are multiplied with, complex64 [rows, 1, dim / 2].
        kernels: compute what does not attend, in the models whose activation is SiLU; None: torch does.
    """

    plan: AttentionPlan
    shape: Shape
    turns: torch.Tensor
    activation: Activation
    kernels: Kernels | None = None

    def normalise(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return normalise(rows, weight, self.shape.epsilon, self.kernels)

    def gate(self, gate_up: torch.Tensor) -> torch.Tensor:
        """activation(gate) * up: [rows, 2 * inner] -> [rows, inner]"""
        if self.kernels is not None:
            return self.kernels.gate(gate_up)
        gate, up = gate_up.chunk(2, dim=1)
        return self.activation(gate).mul_(up)

    def attend(self, layer: int, packed: torch.Tensor, window: int | None) -> torch.Tensor:
        """Attention of a layer -> [rows, heads * dim].

        Args:
            packed: queries, keys and values [rows, (heads + 2 * kv_heads) * dim]; it is changed.
        """
        heads, kv_heads, dim = self.shape.heads, self.shape.kv_heads, self.shape.dim
        rows, turned = packed.shape[0], heads + kv_heads
        if self.kernels is not None:
            self.kernels.turn(packed, self.turns, turned, dim)
        else:
            turn(packed[:, : turned * dim].view(rows, turned, dim), self.turns)
        query, key_value = packed.split_with_sizes([heads * dim, 2 * kv_heads * dim], dim=1)
        query, key_value = query.view(rows, heads, dim), key_value.view(rows, 2, kv_heads, dim)
        return attend(self.plan, layer, query, key_value, scale=dim**-0.5, window=window)


class CompiledOperations:
    """The same of passes of commits and probes; what they share between layers is made once.

    What a method returns holds until the next call of one.

    Args:
        turns: complex64 [rows, 1, dim / 2], of the rows' positions.
    """

    def __init__(self, plan: AttentionPlan, shape: Shape, turns: torch.Tensor, kernels: Kernels) -> None:
        if plan.kernel is None:
            raise ValueError("the pass has no commits and probes")
        self._plan, self._shape, self._kernels = plan, shape, kernels
        self._turns, self._tiles, own = turns, plan.kernel.tiles, plan.kernel.own
        self._groups = shape.heads // shape.kv_heads
        self._buffers: dict[int, torch.Tensor] = {}
        self._call = AttentionCall(
            tiles=None,
            own=own.data_ptr(),
            query_head=shape.dim,
            key_head=shape.dim,
            kv_heads=shape.kv_heads,
            groups=self._groups,
            dim=shape.dim,
            depth=own.shape[1],
            scale=shape.dim**-0.5,
        )

    def normalise(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return self._kernels.normalise(rows, weight, self._shape.epsilon, self._buffer(rows, rows.shape[1]))

    def gate(self, gate_up: torch.Tensor) -> torch.Tensor:
        return self._kernels.gate(gate_up, self._buffer(gate_up, gate_up.shape[1] // 2))

    def attend(self, layer: int, packed: torch.Tensor, window: int | None) -> torch.Tensor:
        plan, heads, kv_heads, dim = self._plan, self._shape.heads, self._shape.kv_heads, self._shape.dim
        key_value = packed[:, heads * dim :].view(-1, 2, kv_heads, dim)
        arena = plan.cache.arena(layer, key_value)
        adopt(plan, layer, arena)
        attended = self._attend(packed, arena.rows, window)
        keep_probed(plan, layer, key_value)
        return attended

    def _attend(self, packed: torch.Tensor, cache: torch.Tensor, window: int | None) -> torch.Tensor:
        """Turns and caches what a projection made, and attends; `cache` [capacity, 2, kv_heads, dim]."""
        heads, kv_heads, dim = self._shape.heads, self._shape.kv_heads, self._shape.dim
        tiles, size = self._tiles(window, self._groups), packed.element_size()
        out = self._buffer(packed, heads * dim)
        call, start, cached = self._call, packed.data_ptr(), cache.data_ptr()
        call.query, call.out, call.tiles = start, out.data_ptr(), tiles.data_ptr()
        call.key = start + heads * dim * size
        call.value = start + (heads + kv_heads) * dim * size
        call.keys, call.values = cached, cached + cache.stride(1) * size
        call.query_row = call.key_row = packed.stride(0)
        call.cache_row, call.cache_head = cache.stride(0), cache.stride(2)
        call.half = int(packed.dtype == torch.bfloat16)
        self._kernels.turn_and_keep(call, packed, self._turns, self._plan.slots)
        self._kernels.run(call, tiles)
        return out

    def _buffer(self, like: torch.Tensor, width: int) -> torch.Tensor:
        """[rows, width]; rows that nothing is written to hold numbers of before."""
        buffer = self._buffers.get(width)
        if buffer is None:
            buffer = self._buffers[width] = like.new_zeros((like.shape[0], width))
        return buffer


def normalise(
    rows: torch.Tensor, weight: torch.Tensor, epsilon: float, kernels: Kernels | None
) -> torch.Tensor:
    """RMS normalisation of [rows, width]."""
    if kernels is not None:
        return kernels.normalise(rows, weight, epsilon)
    return functional.rms_norm(rows, weight.shape, weight, epsilon)


def turn(heads: torch.Tensor, turns: torch.Tensor) -> None:
    """Rotates [rows, heads, dim] in place and leaves real and imaginary parts side by side.

    In the model the parts lie in the two halves of a head; queries and keys alike may be permuted.
    """
    rows, count, dim = heads.shape
    real, imaginary = heads.view(rows, count, 2, dim // 2).float().unbind(2)
    pairs = heads.view(rows, count, dim // 2, 2)
    turned = torch.complex(real, imaginary).mul_(turns)
    pairs.copy_(torch.view_as_real(turned))


# By name: importing the classes takes 0.1 GB.
_RELATIVES = {
    f"transformers.models.{name.lower()}.modeling_{name.lower()}.{name}ForCausalLM"
    for name in ("Llama", "Mistral", "Qwen2")
}


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_norm: torch.Tensor
    query_key_value: Matrix | GroupedMatrix
    bias: torch.Tensor | None
    output: Matrix | GroupedMatrix
    feed_norm: torch.Tensor
    gate_up: Matrix | GroupedMatrix
    down: Matrix | GroupedMatrix
    window: int | None


class FusedLlama:
    """Computes what the model computes, up to rounding.

    Args:
        model: transformers' module, or a `PlainLlama`; of matrices it keeps views, or nothing.
        matrix: makes those that rows are multiplied with.
        kernels: compute what lies between the products; None, or where they do not suit: torch does.

    Raises:
        ValueError: a matrix cannot be made so.
    """

    def __init__(self, model: Any, *, matrix: MakesMatrix = Matrix, kernels: Kernels | None = None) -> None:
        config = model.config
        self._activation = model.model.layers[0].mlp.act_fn
        self._layers = [_fuse(layer, matrix) for layer in model.model.layers]
        self._head = _head(model, getattr(matrix, "head", matrix))
        self._norm: torch.Tensor = model.model.norm.weight.detach()
        embedding = model.model.embed_tokens
        self._embed: Callable[[torch.Tensor], torch.Tensor] = embedding.weight.__getitem__
        if isinstance(self._head, GroupedMatrix) and model.lm_head.weight is embedding.weight:
            self._embed = self._head.values
        self._shape = Shape(
            config.num_attention_heads,
            config.num_key_value_heads,
            model.model.layers[0].self_attn.head_dim,
            config.rms_norm_eps,
        )
        self._kernels = kernels if _suits_kernels(model, self._shape.dim) else None
        self._compiled: CompiledLayers | None = None
        if self._kernels is not None and CompiledLayers.suit(self._layers):
            heads = self._shape.heads, self._shape.kv_heads, self._shape.dim
            self._compiled = CompiledLayers(self._layers, *heads, self._shape.epsilon, self._kernels)
        rotary = model.model.rotary_emb
        self._frequencies: torch.Tensor = rotary.inv_freq
        self._rotary_scale: float = rotary.attention_scaling

    @staticmethod
    def suits(model: Any) -> bool:
        """Whether the model is of a kind that this class computes."""
        if f"{type(model).__module__}.{type(model).__name__}" not in _RELATIVES:
            return False
        layer = model.model.layers[0]
        biased = (layer.self_attn.o_proj, layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj)
        return model.lm_head.bias is None and all(linear.bias is None for linear in biased)

    def matrices(self) -> list[Matrix | GroupedMatrix]:
        parts = [(each.query_key_value, each.output, each.gate_up, each.down) for each in self._layers]
        return [self._head, *chain.from_iterable(parts)]

    def __call__(
        self, tokens: torch.Tensor, positions: torch.Tensor, keep: torch.Tensor, plan: AttentionPlan
    ) -> torch.Tensor:
        """Logits [len(keep), vocab] of the rows `keep` of a pass over tokens [rows] at positions [rows]."""
        hidden, turns = self._embed(tokens), self._turns(positions)  # hidden: [rows, width]
        if self._compiled is not None and self._compiled.takes(plan):
            self._compiled(hidden, turns, plan)
        else:
            hidden = self._one_by_one(hidden, self._operations(turns, plan))
        return self._head(
            normalise(hidden.index_select(0, keep), self._norm, self._shape.epsilon, self._kernels)
        )

    def _one_by_one(
        self, hidden: torch.Tensor, between: TorchOperations | CompiledOperations
    ) -> torch.Tensor:
        """Rows [rows, width] after all layers."""
        for index, layer in enumerate(self._layers):
            packed = layer.query_key_value(between.normalise(hidden, layer.attention_norm))
            if layer.bias is not None:
                packed += layer.bias
            hidden = layer.output.added_to(hidden, between.attend(index, packed, layer.window))
            gate_up = layer.gate_up(between.normalise(hidden, layer.feed_norm))
            hidden = layer.down.added_to(hidden, between.gate(gate_up))
        return hidden

    def _operations(self, turns: torch.Tensor, plan: AttentionPlan) -> TorchOperations | CompiledOperations:
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


def _fuse(layer: Any, matrix: MakesMatrix) -> _Layer:
    attention, feed = layer.self_attn, layer.mlp
    query_key_value = (attention.q_proj, attention.k_proj, attention.v_proj)
    biases = [linear.bias for linear in query_key_value if linear.bias is not None]
    return _Layer(
        attention_norm=layer.input_layernorm.weight.detach(),
        query_key_value=_share(getattr(matrix, "before_attention", matrix), *query_key_value),
        bias=torch.cat(biases) if biases else None,
        output=_share(matrix, attention.o_proj),
        feed_norm=layer.post_attention_layernorm.weight.detach(),
        gate_up=_share(matrix, feed.gate_proj, feed.up_proj),
        down=_share(matrix, feed.down_proj),
        window=layer_window(attention),
    )


@torch.no_grad()
def _head(model: Any, matrix: MakesMatrix) -> Matrix | GroupedMatrix:
    """[width, vocab]; where it is tied to the embedding, which is read by rows, a CPU gets a copy."""
    weight = model.lm_head.weight
    if weight is not model.model.embed_tokens.weight:
        return _share(matrix, model.lm_head)
    transposed = weight.detach().t()
    if _prefers_inputs_first(weight):
        transposed = transposed.contiguous()
    return matrix(transposed)


def _prefers_inputs_first(weight: torch.Tensor) -> bool:
    """Whether a few rows are faster times a matrix [in, out]: by half on a CPU in float32."""
    return weight.device.type == "cpu" and weight.dtype == torch.float32


def layer_window(attention: Any) -> int | None:
    """The sliding window of a layer: Mistral has one for all layers, Qwen2 one for each."""
    owner = attention.config if type(attention).__name__ == "MistralAttention" else attention
    window: int | None = getattr(owner, "sliding_window", None)
    return window


@torch.no_grad()
def _share(make: MakesMatrix, *linears: Any) -> Matrix | GroupedMatrix:
    """The weights side by side [in, outs]; the modules keep views of them, so that no copy stays."""
    weights = [linear.weight for linear in linears]
    if _prefers_inputs_first(weights[0]):
        shared = torch.cat([weight.t() for weight in weights], dim=1)
    else:
        shared = torch.cat(weights).t()
    matrix = make(shared)
    for weight, part in zip(
        weights, torch.split(shared, [len(weight) for weight in weights], dim=1), strict=True
    ):
        weight.data = weight.new_empty(0) if matrix.plain is None else part.t()
    return matrix
