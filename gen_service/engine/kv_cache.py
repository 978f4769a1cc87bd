"""Keys and values of all sequences: one arena per layer, in which a sequence owns a contiguous extent."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Arena:
    """One layer: `rows` [capacity, 2, kv_heads, dim]; keys and values as [1, kv_heads, capacity, dim]."""

    rows: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor


class KvCache:
    """Arenas of `capacity` tokens per layer, made when a layer first writes.

    Attributes:
        sink: a row that nobody reads, for passes of a fixed shape that write fewer rows than they have.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.sink = capacity
        self._layers: dict[int, Arena] = {}

    def write(self, layer: int, slots: torch.Tensor, rows: torch.Tensor) -> Arena:
        """Keeps keys and values `rows` [n, 2, kv_heads, dim] in the cache rows `slots` [n]."""
        arena = self.arena(layer, rows)
        if len(slots):
            arena.rows.index_copy_(0, slots, rows)
        return arena

    def arena(self, layer: int, like: torch.Tensor) -> Arena:
        """The arena of a layer, made for rows [n, 2, kv_heads, dim] at its first use."""
        arena = self._layers.get(layer)
        if arena is None:
            arena = self._layers[layer] = _new_arena(self.capacity + 1, like)
        return arena

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one cached token over the layers that have written."""
        return sum(arena.rows[0].numel() * arena.rows.element_size() for arena in self._layers.values())

    def move(self, source: int, target: int, length: int) -> None:
        """Copies `length` rows; the two places may overlap."""
        for arena in self._layers.values():
            arena.rows[target : target + length] = arena.rows[source : source + length].clone()


def _new_arena(capacity: int, like: torch.Tensor) -> Arena:
    """On a CPU the rows of one KV head lie together: read by head, in half the time of scattered rows."""
    if like.device.type == "cpu":
        rows = like.new_empty((*like.shape[1:3], capacity, like.shape[3])).permute(2, 0, 1, 3)
    else:
        rows = like.new_empty((capacity, *like.shape[1:]))
    keys, values = (rows[:, side].transpose(0, 1)[None] for side in (0, 1))
    return Arena(rows, keys, values)
