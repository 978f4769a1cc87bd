"""Which rows of the KV arena belong to whom; no tensors here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extent:
    """Arena rows [start, start + length)."""

    start: int
    length: int

    @property
    def stop(self) -> int:
        return self.start + self.length


class ExtentAllocator:
    """First-fit allocation of contiguous extents."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._free = [Extent(0, capacity)]  # sorted by start, never adjacent, never empty

    @property
    def free_rows(self) -> int:
        return sum(extent.length for extent in self._free)

    def take(self, length: int) -> Extent | None:
        """An extent of `length` rows, or None if no free one is long enough."""
        for index, gap in enumerate(self._free):
            if gap.length >= length:
                self._replace(index, Extent(gap.start + length, gap.length - length))
                return Extent(gap.start, length)
        return None

    def extend(self, extent: Extent, length: int) -> Extent | None:
        """The extent made `length` rows long where it stands, or None if the rows behind it are taken."""
        for index, gap in enumerate(self._free):
            more = length - extent.length
            if gap.start == extent.stop and gap.length >= more:
                self._replace(index, Extent(gap.start + more, gap.length - more))
                return Extent(extent.start, length)
        return None

    def give_back(self, extent: Extent) -> None:
        """Frees an extent and joins it with its free neighbours."""
        merged: list[Extent] = []
        for gap in sorted([*self._free, extent], key=lambda e: e.start):
            if merged and merged[-1].stop == gap.start:
                merged[-1] = Extent(merged[-1].start, merged[-1].length + gap.length)
            else:
                merged.append(gap)
        self._free = merged

    def _replace(self, index: int, rest: Extent) -> None:
        self._free[index : index + 1] = [rest] if rest.length else []
