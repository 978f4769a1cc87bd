"""Keys and values of all sequences: one arena per layer, in which a sequence owns a contiguous extent."""

import torch


class KvCache:
    """Arenas [capacity, kv_heads, dim] per layer, made when a layer first writes."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def layer(self, index: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Arenas of a layer, shaped after the rows `key` and `value` [rows, kv_heads, dim]."""
        arenas = self._layers.get(index)
        if arenas is None:
            arenas = (
                key.new_empty((self.capacity, *key.shape[1:])),
                value.new_empty((self.capacity, *value.shape[1:])),
            )
            self._layers[index] = arenas
        return arenas

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one cached token over the layers that have written."""
        return sum(
            arena[0].numel() * arena.element_size() for pair in self._layers.values() for arena in pair
        )

    def move(self, source: int, target: int, length: int) -> None:
        """Copies `length` rows; the two places may overlap."""
        for pair in self._layers.values():
            for arena in pair:
                arena[target : target + length] = arena[source : source + length].clone()
