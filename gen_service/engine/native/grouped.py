"""Matrices of whole numbers in 4 or 8 bits, with a scale and an offset for each 32 inputs of an output.

Each row of a pass is made of whole numbers as well, so that a processor multiplies and adds four at a time;
where 8 bits of a row cost most, before attention and at the output, it has 16.
Every row is computed by itself: it has the same bits whatever stands beside it. Where that is not asked for,
and the processor multiplies tiles of bfloat16, many rows are multiplied with the values in bfloat16.
"""

import ctypes

import torch

from ttmark.gen_service.engine.native import Kernels, function, is_half, split

GROUP = 32
_TILE = 16
_MANY_ROWS = 16  # from here on the values in bfloat16 are faster
_ROUNDING = 1 / 128  # of bfloat16, with that of the scale and offset


class _Matrix(ctypes.Structure):
    """`struct grouped` of kernels.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("codes", "scales", "offsets")),
        *((name, ctypes.c_int64) for name in ("outs", "ins")),
        ("bits", ctypes.c_int32),
        ("fine", ctypes.c_int32),
    ]


class _CodedRows(ctypes.Structure):
    """`struct coded_rows` of kernels.c."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("codes", "scales", "sums")]


class GroupedMatrix:
    """A matrix [outs, ins] in groups, which rows are multiplied with.

    In 4 bits a group has 16 values from its smallest number to its largest; in 8 bits 255 around zero.

    Args:
        weight: [outs, ins] in float32 or bfloat16, contiguous; it is not kept.
        bits: 4 or 8.
        fine: rows are multiplied as whole numbers of 16 bits, not of 8.

    Attributes:
        is_exact: no number has changed by more than bfloat16 rounds the largest of its group.
        plain: what the model has of it; None: nothing.
        alike: a row has the same bits in any batch; else many rows together may have others.
        multiplies_tiles: whether they do, on this processor.

    Raises:
        ValueError: the inputs are no multiple of 32, another number of bits or another type.
    """

    def __init__(self, weight: torch.Tensor, bits: int, kernels: Kernels, *, fine: bool = False) -> None:
        outs, ins = weight.shape
        if not self.suits(weight) or bits not in (4, 8):
            raise ValueError(f"no groups of {GROUP} in {bits} bits for a matrix of {outs} x {ins}")
        self.outs, self.ins, self.bits, self.dtype = outs, ins, bits, weight.dtype
        self._tiles, groups = -(-outs // _TILE), ins // GROUP
        self._codes = torch.zeros((self._tiles, groups, _TILE * GROUP * bits // 8), dtype=torch.uint8)
        self._scales = torch.zeros((self._tiles, groups, _TILE), dtype=torch.float16)
        self._offsets = torch.zeros_like(self._scales)
        parts = (each.data_ptr() for each in (self._codes, self._scales, self._offsets))
        self._matrix = _Matrix(*parts, outs, ins, bits, fine)
        self._parts = 2 if fine else 1
        library, span, pointer = kernels.library, (ctypes.c_int64, ctypes.c_int64), ctypes.c_void_p
        size, flag = ctypes.c_int64, ctypes.c_int
        self._code_rows = function(library.ttmark_code_rows, *[pointer] * 3, size, flag)
        self._multiply = function(
            library.ttmark_multiply, pointer, pointer, size, pointer, pointer, *span, flag
        )
        self._ungroup = function(library.ttmark_ungroup, pointer, pointer, size, pointer, flag)
        self._multiply_many = function(
            library.ttmark_multiply_many, pointer, pointer, size, pointer, pointer, *span
        )
        self._multiply_many.restype = ctypes.c_int
        self.multiplies_tiles = weight.dtype == torch.bfloat16 and bool(library.ttmark_multiplies_many())
        self.alike = True
        group = function(library.ttmark_group, pointer, pointer, *span, flag)
        group.restype = ctypes.c_float
        self.plain: torch.Tensor | None = None
        weight = weight.contiguous()
        change = group(ctypes.byref(self._matrix), weight.data_ptr(), 0, self._tiles, is_half(weight))
        self.is_exact = change <= _ROUNDING

    @staticmethod
    def suits(weight: torch.Tensor) -> bool:
        """Whether the inputs come in groups, of numbers that the kernels read."""
        readable = weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.bfloat16)
        return readable and weight.dim() == 2 and weight.shape[1] % GROUP == 0

    def in_tiles(self, count: int) -> bool:
        """Whether so many rows in bfloat16 are multiplied in tiles."""
        return count >= _MANY_ROWS and self.multiplies_tiles and not self.alike

    @property
    def address(self) -> int:
        """Of `struct grouped`, for calls in C."""
        return ctypes.addressof(self._matrix)

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._scales.nbytes + self._offsets.nbytes

    def __call__(self, rows: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """[rows, ins] -> [rows, outs], and `residual` [rows, outs] added, if it is given."""
        rows, count, half = rows.contiguous(), len(rows), is_half(rows)
        out = rows.new_empty((count, self.outs))
        residual = None if residual is None else residual.contiguous()  # has to live until the end
        added, to = None if residual is None else residual.data_ptr(), out.data_ptr()
        matrix, numbers = ctypes.byref(self._matrix), _TILE * self.ins * count
        if half and self.in_tiles(count):
            whole, done = rows.data_ptr(), []
            split(
                lambda *span: done.append(self._multiply_many(matrix, whole, count, to, added, *span)),
                self._tiles,
                numbers,
            )
            if not all(done):
                raise MemoryError(f"no memory for the values of {_TILE} x {self.ins} numbers")
            return out
        coded = torch.empty((count, self._parts, self.ins), dtype=torch.int8)
        scales, sums = torch.empty((2, count, self._parts, self.ins // GROUP)).unbind()
        parts = _CodedRows(coded.data_ptr(), scales.data_ptr(), sums.data_ptr())
        self._code_rows(matrix, ctypes.byref(parts), rows.data_ptr(), count, half)
        split(
            lambda first, last: self._multiply(
                matrix, ctypes.byref(parts), count, to, added, first, last, half
            ),
            self._tiles,
            numbers,
        )
        return out

    def added_to(self, residual: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return self(rows, residual)

    def values(self, outs: torch.Tensor) -> torch.Tensor:
        """What the outputs [n], int64, stand for: [n, ins].

        Raises:
            IndexError: there is no such output.
        """
        outs = outs.contiguous()
        if len(outs) and not 0 <= int(outs.min()) <= int(outs.max()) < self.outs:
            raise IndexError(f"an output beyond {self.outs}")
        values = torch.empty((len(outs), self.ins), dtype=self.dtype)
        self._ungroup(
            ctypes.byref(self._matrix), outs.data_ptr(), len(outs), values.data_ptr(), is_half(values)
        )
        return values
