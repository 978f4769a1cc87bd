"""The weaker single layer: keep a share of the distribution as it was."""

from shared.watermark.arrays import Array


def blend(before: Array, after: Array, weight: float) -> Array:
    """(1 - w) P + w F(P), distortion-free because F is and w does not depend on the key."""
    return after if weight == 1.0 else before + weight * (after - before)


def check_blend(weight: float) -> None:
    """Raises ValueError unless 0 < weight <= 1."""
    if not 0.0 < weight <= 1.0:
        raise ValueError(f"blend must be above 0 and at most 1, not {weight}")
