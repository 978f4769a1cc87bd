"""Range checks that several schemes share."""

MAX_LAYERS = 16


def check_layers(layers: int) -> None:
    """Raises ValueError unless the number of layers is in range."""
    if not 1 <= layers <= MAX_LAYERS:
        raise ValueError(f"layers must be 1 to {MAX_LAYERS}, not {layers}")
