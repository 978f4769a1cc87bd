"""Makes a model's matrices of whole numbers, when it is loaded."""

import torch

from ttmark.gen_service.engine.model.llama import FusedLlama, MakesMatrix, Matrix
from ttmark.gen_service.engine.native import Kernels, find_kernels
from ttmark.gen_service.engine.native.grouped import GROUP, GroupedMatrix

BITS = {"int4": 4, "int8": 8}
_BEFORE_ATTENTION = ("q_proj", "k_proj", "v_proj", "qkv_proj", "query_key_value")


class Grouping:
    """Makes a model's matrices of whole numbers.

    Args:
        bits: of the layers' matrices, 4 or 8; the output matrix has 8.
        kept: the model keeps its matrices, with the values that are computed with, to be compared.
        exact: refuses what would change by more than rounding, as all numbers do that were in no such groups.
    """

    def __init__(self, bits: int, kernels: Kernels, *, exact: bool = False, kept: bool = False) -> None:
        self._bits, self._kernels, self._exact = bits, kernels, exact
        self._kept: list[GroupedMatrix] | None = [] if kept else None

    def __call__(self, plain: torch.Tensor) -> GroupedMatrix:
        """
        Args:
            plain: [ins, outs], with the inputs of an output beside each other; if it is kept, it is changed.

        Raises:
            ValueError: the values would change, or the inputs are no multiple of 32.
        """
        return self._grouped(plain, self._bits)

    def before_attention(self, plain: torch.Tensor) -> GroupedMatrix:
        """The same of what makes queries, keys and values."""
        return self._grouped(plain, self._bits, fine=True)

    def head(self, plain: torch.Tensor) -> GroupedMatrix:
        """The same of the output matrix."""
        return self._grouped(plain, 8, fine=True)

    def _grouped(self, plain: torch.Tensor, bits: int, *, fine: bool = False) -> GroupedMatrix:
        weight = plain.t()
        matrix = GroupedMatrix(weight, bits, self._kernels, fine=fine)
        if self._exact and not matrix.is_exact:
            raise ValueError(f"its numbers have more than {1 << bits} values in a group of {GROUP}")
        if self._kept is not None:
            weight.copy_(matrix.values(torch.arange(matrix.outs)))
            matrix.plain = plain
            self._kept.append(matrix)
        return matrix

    def let_go(self, model: torch.nn.Module) -> None:
        """What was kept to be compared, all linear layers of `model` being grouped."""
        for matrix in self._kept or ():
            matrix.plain = None
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.data = module.weight.new_empty(0)


class GroupedLinear(torch.nn.Module):
    """A linear layer of any model over a matrix in groups."""

    def __init__(self, linear: torch.nn.Linear, matrix: GroupedMatrix) -> None:
        super().__init__()
        self.matrix, self.bias = matrix, linear.bias

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """[..., ins] -> [..., outs]"""
        rows = self.matrix(values.reshape(-1, self.matrix.ins)).view(*values.shape[:-1], -1)
        return rows if self.bias is None else rows + self.bias


def group_linears(model: torch.nn.Module, grouping: Grouping, head: torch.nn.Module | None) -> None:
    """Puts `GroupedLinear` in place of the linear layers of a model whose inputs come in groups.

    Raises:
        ValueError: the model has no such layer, or values would change; what was replaced stays so.
    """
    found = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if isinstance(layer, torch.nn.Linear) and GroupedMatrix.suits(layer.weight)
    ]
    if not found:
        raise ValueError(f"no linear layer of this model has inputs in groups of {GROUP}")
    for parent, name, layer in found:
        plain = layer.weight.detach().t()
        make = grouping.before_attention if name in _BEFORE_ATTENTION else grouping
        matrix = grouping.head(plain) if layer is head else make(plain)
        matrix.plain = None
        setattr(parent, name, GroupedLinear(layer, matrix))


def grouped_matrices(model: torch.nn.Module, fused: FusedLlama | None) -> list[GroupedMatrix]:
    if fused is not None:
        return [matrix for matrix in fused.matrices() if isinstance(matrix, GroupedMatrix)]
    return [layer.matrix for layer in model.modules() if isinstance(layer, GroupedLinear)]


def matrix_maker(weights: str) -> MakesMatrix:
    """Makes matrices that lie as `Acceleration` says.

    Raises:
        ValueError: in numbers of so many bits nothing is multiplied here.
    """
    if weights == "plain":
        return Matrix
    if weights == "packed":
        return Matrix.pack
    kernels = find_kernels()
    if kernels is None:
        raise ValueError(f"matrices of {weights} need the compiled kernels")
    return Grouping(BITS[weights], kernels)
