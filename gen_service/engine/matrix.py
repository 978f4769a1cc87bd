"""A matrix of the model, and the fastest way to multiply a few rows with it."""

from dataclasses import dataclass
from functools import cache

import torch

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
        plain: [in, out], in any layout.
        packed: the same for oneDNN, a second copy; None: there is none.
    """

    plain: torch.Tensor
    packed: torch.Tensor | None = None

    @classmethod
    def pack(cls, plain: torch.Tensor) -> "Matrix":
        """A matrix with its packed copy.

        Raises:
            RuntimeError, AttributeError: oneDNN does not pack it on this machine.
        """
        return cls(plain, torch.ops.mkldnn._reorder_linear_weight(plain.t().contiguous(), None))

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[rows, in] -> [rows, out]"""
        if self._is_plain_for(rows):
            if _is_slow_in_bf16(rows):
                return (rows.float() @ self.plain.float()).to(rows.dtype)
            return rows @ self.plain
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, self.packed, None, "none", [], "")
        return product

    def added_to(self, residual: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """`residual` [rows, out] and the product of `rows` [rows, in]."""
        if self._is_plain_for(rows):
            if _is_slow_in_bf16(rows):
                return torch.addmm(residual.float(), rows.float(), self.plain.float()).to(rows.dtype)
            return torch.addmm(residual, rows, self.plain)
        total: torch.Tensor = torch.ops.mkldnn._linear_pointwise.binary(
            rows, residual, self.packed, None, "add"
        )
        return total

    def _is_plain_for(self, rows: torch.Tensor) -> bool:
        return self.packed is None or (rows.shape[0] == 1 and rows.dtype == torch.float32)


def _is_slow_in_bf16(rows: torch.Tensor) -> bool:
    """Whether a plain product of so many rows takes longer than one in float32 with its conversions."""
    return rows.dtype == torch.bfloat16 and rows.device.type == "cpu" and rows.shape[0] >= _MANY_ROWS


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Whether oneDNN packs matrices of `dtype` here; in bf16 it needs AVX-512 or AVX-NE-CONVERT."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    try:
        Matrix.pack(torch.eye(16, dtype=dtype))(torch.ones(2, 16, dtype=dtype))
    except (RuntimeError, AttributeError):
        return False
    return True
