"""A GGUF file: its metadata and its weights."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray


class GGUFFile:
    """An open GGUF file.

    Args:
        path: read through a memory map, which stays open as long as this object.
    """

    def __init__(self, path: Path) -> None:
        self._reader = gguf.GGUFReader(path)

    def __getitem__(self, key: str) -> Any:
        """A value of the metadata.

        Raises:
            KeyError: the file has no such key.
        """
        return self._reader.fields[key].contents()

    def __len__(self) -> int:
        """Number of tensors."""
        return len(self._reader.tensors)

    def tensors(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Name and weights of each tensor, rows first, as the numbers that its quantisation stands for."""
        for tensor in self._reader.tensors:
            yield tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
