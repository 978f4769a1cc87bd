"""The few array operations on which numpy and torch differ, so that the maths is written once."""

from typing import Any

import array_api_compat
import numpy as np

Array = Any
"""A numpy array or a torch tensor."""


def namespace(array: Array) -> Any:
    """The array-API namespace (numpy-like or torch-like) that `array` belongs to."""
    return np if is_numpy(array) else array_api_compat.array_namespace(array)


def is_numpy(array: Array) -> bool:
    """Whether `array` is a numpy array; everything else is taken for a torch tensor."""
    return isinstance(array, np.ndarray)
