"""The small operations of a pass on a CPU, in C: compiled where a compiler is, else torch's own are used."""

from ttmark.gen_service.engine.native.kernels import Kernels, find_kernels
from ttmark.gen_service.engine.native.tree_pass import TreePass

__all__ = ["Kernels", "TreePass", "find_kernels"]
