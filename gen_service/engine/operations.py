"""What lies between the matrix products of a pass: by torch's operators, or compiled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch.nn import functional

from ttmark.gen_service.engine.attention import AttentionPlan, adopt, attend, keep_probed
from ttmark.gen_service.engine.native import Kernels, TreePass

Activation = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a model: query heads, KV heads, numbers of a head, epsilon of the normalisation."""

    heads: int
    kv_heads: int
    dim: int
    epsilon: float


class Operations(Protocol):
    """The operations of one pass. What a method returns holds until the next call of one."""

    def normalise(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMS normalisation of [rows, width]."""

    def gate(self, gate_up: torch.Tensor) -> torch.Tensor:
        """activation(gate) * up: [rows, 2 * inner] -> [rows, inner]"""

    def attend(self, layer: int, packed: torch.Tensor, window: int | None) -> torch.Tensor:
        """Attention of a layer -> [rows, heads * dim].

        Args:
            packed: queries, keys and values [rows, (heads + 2 * kv_heads) * dim]; it is changed.
        """


class TorchOperations:
    """For any pass.

    Args:
        turns: what queries and keys are multiplied with, complex64 [rows, 1, dim / 2].
        kernels: compute what does not attend, in the models whose activation is SiLU; None: torch does.
    """

    def __init__(
        self,
        plan: AttentionPlan,
        shape: Shape,
        turns: torch.Tensor,
        activation: Activation,
        kernels: Kernels | None = None,
    ) -> None:
        self._plan, self._shape, self._turns = plan, shape, turns
        self._activation, self._kernels = activation, kernels

    def normalise(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if self._kernels is not None:
            return self._kernels.normalise(rows, weight, self._shape.epsilon)
        return functional.rms_norm(rows, weight.shape, weight, self._shape.epsilon)

    def gate(self, gate_up: torch.Tensor) -> torch.Tensor:
        if self._kernels is not None:
            return self._kernels.gate(gate_up)
        gate, up = gate_up.chunk(2, dim=1)
        return self._activation(gate).mul_(up)

    def attend(self, layer: int, packed: torch.Tensor, window: int | None) -> torch.Tensor:
        heads, kv_heads, dim = self._shape.heads, self._shape.kv_heads, self._shape.dim
        rows, turned = packed.shape[0], heads + kv_heads
        if self._kernels is not None:
            self._kernels.turn(packed, self._turns, turned, dim)
        else:
            turn(packed[:, : turned * dim].view(rows, turned, dim), self._turns)
        query, key_value = packed.split_with_sizes([heads * dim, 2 * kv_heads * dim], dim=1)
        query, key_value = query.view(rows, heads, dim), key_value.view(rows, 2, kv_heads, dim)
        return attend(self._plan, layer, query, key_value, scale=dim**-0.5, window=window)


class CompiledOperations:
    """For passes of commits and probes."""

    def __init__(self, plan: AttentionPlan, shape: Shape, turns: torch.Tensor, kernels: Kernels) -> None:
        if plan.kernel is None:
            raise ValueError("the pass has no commits and probes")
        self._plan, self._shape = plan, shape
        tiles, groups = plan.kernel.tiles, shape.heads // shape.kv_heads
        sizes = (shape.heads, shape.kv_heads, shape.dim)
        self._pass = TreePass(
            kernels, turns, plan.slots, lambda window: tiles(window, groups), plan.kernel.own, sizes
        )

    def normalise(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return self._pass.normalise(rows, weight, self._shape.epsilon)

    def gate(self, gate_up: torch.Tensor) -> torch.Tensor:
        return self._pass.gate(gate_up)

    def attend(self, layer: int, packed: torch.Tensor, window: int | None) -> torch.Tensor:
        plan, heads, kv_heads, dim = self._plan, self._shape.heads, self._shape.kv_heads, self._shape.dim
        key_value = packed[:, heads * dim :].view(-1, 2, kv_heads, dim)
        arena = plan.cache.arena(layer, key_value)
        adopt(plan, layer, arena)
        attended = self._pass.attend(packed, arena.rows, window)
        keep_probed(plan, layer, key_value)
        return attended


def turn(heads: torch.Tensor, turns: torch.Tensor) -> None:
    """Rotates [rows, heads, dim] in place and leaves real and imaginary parts side by side.

    In the model the parts lie in the two halves of a head; queries and keys alike may be permuted.
    """
    rows, count, dim = heads.shape
    real, imaginary = heads.view(rows, count, 2, dim // 2).float().unbind(2)
    pairs = heads.view(rows, count, dim // 2, 2)
    turned = torch.complex(real, imaginary).mul_(turns)
    pairs.copy_(torch.view_as_real(turned))
