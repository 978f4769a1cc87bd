"""The small operations of a pass on a CPU, in C: compiled where a compiler is, else torch's own are used."""

from ttmark.gen_service.engine.native.kernels import Kernels, find_kernels

__all__ = ["Kernels", "find_kernels"]
