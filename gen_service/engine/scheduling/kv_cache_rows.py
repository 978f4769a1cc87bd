"""Rows of the KV cache: which sequence holds them, which are kept as prefixes for others, what is copied.

Plain numbers, no tensors.
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ttmark.gen_service.engine.scheduling.schedulable import Extent, Schedulable

_MOST = 256
_SHORTEST = 8
_WIDTH = array("i").itemsize
_CHUNK_END, _GROUP_END = 1, 2


class Cuts:
    """Where a sequence may go on from cached rows, and what makes two sequences' rows equal.

    Args:
        chunk: tokens of a prompt that are computed in one pass.
        exact: rows are equal only if they were computed in the same pieces, so that they have the same bits;
            else wherever the tokens are.
    """

    def __init__(self, chunk: int, *, exact: bool) -> None:
        self._chunk = chunk
        self._exact = exact

    def trace(self, sequence: Schedulable, count: int) -> bytes:
        """The first `count` tokens of a sequence; if exact, with a mark on the last of each piece."""
        if not self._exact:
            return array("i", sequence.tokens[:count]).tobytes()
        marked = array("i", [token << 2 for token in sequence.tokens[:count]])
        prompt = min(count, sequence.prompt_length)
        steps = (self._chunk, sequence.prompt_cut)
        ends = {end for step in steps for end in range(step, prompt + 1, step)}
        if count >= sequence.prompt_length:
            ends.add(sequence.prompt_length)
        for end in ends:
            marked[end - 1] += _CHUNK_END
        for end in sequence.group_ends[: bisect_right(sequence.group_ends, count)]:
            marked[end - 1] += _GROUP_END
        return marked.tobytes()

    def before(self, sequence: Schedulable, place: int) -> int:
        """The last place, up to `place`, after which a sequence may go on."""
        if not self._exact:
            return 0 if sequence.repeatable else place
        if place < sequence.prompt_length:
            return self._in_prompt(sequence, place)
        groups = bisect_right(sequence.group_ends, place)
        return sequence.group_ends[groups - 1] if groups else sequence.prompt_length

    def useful(self, sequence: Schedulable) -> int:
        """How many cached tokens of a sequence that has ended others can go on from."""
        known = min(sequence.cached, sequence.most_reused + 1)  # a text that was read is of use to nobody
        if self._exact:
            return self._in_prompt(sequence, min(known, sequence.prompt_length))
        return known

    def _in_prompt(self, sequence: Schedulable, place: int) -> int:
        return max(place - place % self._chunk, place - place % sequence.prompt_cut)


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """Cached rows of a tenant's text, as many as its trace has tokens."""

    tenant: str
    trace: bytes
    extent: Extent


class Prefixes:
    """The prefixes that are kept, the least recently used first."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: list[Prefix] = []

    @property
    def rows(self) -> int:
        return sum(prefix.extent.length for prefix in self._kept)

    def longest(self, tenant: str, trace: bytes) -> tuple[Prefix | None, int]:
        """The tenant's prefix that has the most first tokens in common with `trace`, and how many."""
        best, most = None, 0
        for prefix in self._kept:
            if prefix.tenant == tenant:
                shared = common_tokens(trace, prefix.trace, most)
                if shared > most:
                    best, most = prefix, shared
        return best, most

    def keep(self, prefix: Prefix) -> list[Extent]:
        """Keeps a prefix as the latest; the rows that are free for it, its own if others have its tokens."""
        if len(prefix.trace) < _SHORTEST * _WIDTH or not self._most:
            return [prefix.extent]
        for other in self._kept:
            if other.tenant == prefix.tenant and other.trace.startswith(prefix.trace):
                self.touch(other)
                return [prefix.extent]
        covered = [
            other
            for other in self._kept
            if other.tenant == prefix.tenant and prefix.trace.startswith(other.trace)
        ]
        for other in covered:
            self._kept.remove(other)
        self._kept.append(prefix)
        oldest = [self._kept.pop(0)] if len(self._kept) > self._most else []
        return [other.extent for other in covered + oldest]

    def touch(self, prefix: Prefix) -> None:
        self._kept.remove(prefix)
        self._kept.append(prefix)

    def drop(self, prefix: Prefix) -> Extent | None:
        """Forgets a prefix; its rows, or None if it was not kept any more."""
        if prefix not in self._kept:
            return None
        self._kept.remove(prefix)
        return prefix.extent

    def drop_oldest(self) -> Extent | None:
        """Forgets the least recently used one; its rows, or None if there is none."""
        return self._kept.pop(0).extent if self._kept else None

    def drop_tenant(self, tenant: str) -> list[Extent]:
        dropped = [prefix.extent for prefix in self._kept if prefix.tenant == tenant]
        self._kept = [prefix for prefix in self._kept if prefix.tenant != tenant]
        return dropped


def common_tokens(one: bytes, other: bytes, more_than: int = 0, at_most: int | None = None) -> int:
    """How many first tokens two traces have in common, up to `at_most`; 0 if not more than `more_than`."""
    low, high = more_than, min(len(one), len(other)) // _WIDTH
    high = high if at_most is None else min(high, at_most)
    next_token = slice(low * _WIDTH, (low + 1) * _WIDTH)
    if low >= high or one[next_token] != other[next_token]:
        return 0
    if not one.startswith(other[: low * _WIDTH]):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        part = slice(low * _WIDTH, middle * _WIDTH)
        if one[part] == other[part]:
            low = middle
        else:
            high = middle - 1
    return low


J = TypeVar("J", bound=Schedulable)


@dataclass(frozen=True, slots=True)
class Move:
    """Cache rows to copy before the pass, in the order of the list."""

    source: int
    target: int
    length: int


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


class _Source(NamedTuple, Generic[J]):
    """`length` cached tokens to begin with, of a prefix or of a sequence that runs."""

    length: int
    prefix: Prefix | None
    holder: J | None


class CacheRows(Generic[J]):
    """The rows of the cache: held by sequences, kept as prefixes, or free.

    Prefixes yield: the least recently used goes when a sequence needs room.

    Args:
        cuts: where sequences may go on from rows of others; None: they never do, and no prefix is kept.

    Attributes:
        moves: what is to be copied before the next pass.
        reused_tokens: prompt tokens that were not computed, since the start.
    """

    def __init__(self, allocator: ExtentAllocator, cuts: Cuts | None) -> None:
        self.moves: list[Move] = []
        self.reused_tokens = 0
        self._allocator = allocator
        self._cuts = cuts
        self._prefixes = Prefixes()
        self._prompts: dict[J, bytes] = {}  # traces, of those who hold rows

    @property
    def available(self) -> int:
        return self._allocator.free_rows + self._prefixes.rows

    @property
    def held(self) -> int:
        return self._allocator.capacity - self.available

    @property
    def prefix_rows(self) -> int:
        return self._prefixes.rows

    def admit(self, sequence: J, wanted: int) -> bool:
        """Gives a sequence `wanted` rows, if no others hold them, and what is known of its beginning."""
        if self.available < wanted:
            return False
        own = b"" if self._cuts is None else self._cuts.trace(sequence, sequence.token_count)
        source = self._source(sequence, own)
        if source is not None and source.prefix is not None:
            self._prefixes.touch(source.prefix)
        extent = self._taken_over(source, wanted) if source else None
        reused = source.length if source and extent else 0
        if extent is None:
            moves = len(self.moves)
            extent = self._fit(wanted) or self._fit_compacted(wanted)
            if source and extent:
                reused = self._copy(source, extent, compacted=len(self.moves) > moves)
        self._prompts[sequence] = own[: sequence.prompt_length * _WIDTH]
        sequence.extent = extent
        sequence.cached = reused
        if sequence.reused is None:
            sequence.reused = reused
            self.reused_tokens += sequence.reused
        return True

    def grow(self, sequence: J, needed: int) -> bool:
        """Makes an extent hold `needed` tokens, in place or elsewhere; false if no free rows do."""
        extent = sequence.extent
        if extent is None:
            return False
        wanted = min(sequence.token_limit, max(needed, 2 * extent.length))
        grown = self._fit(wanted, extent) or self._fit_compacted(wanted) or self._fit(needed, extent)
        if grown is None:
            return False
        extent = sequence.extent or extent  # another, if all were moved together
        if grown.start != extent.start:
            self.moves.append(Move(extent.start, grown.start, sequence.cached))
            self._allocator.give_back(extent)
        sequence.extent = grown
        return True

    def release(self, sequence: J, *, comes_back: bool) -> None:
        """Takes a sequence's rows; those that are of use to it or to others stay as a prefix."""
        extent = sequence.extent
        self._prompts.pop(sequence, None)
        if extent is None:
            return
        length = 0
        if self._cuts is not None:
            last = min(sequence.cached, sequence.token_count - 1)
            length = self._cuts.before(sequence, last) if comes_back else self._cuts.useful(sequence)
        if self._cuts is None or not length:
            self._allocator.give_back(extent)
            return
        if length < extent.length:
            self._allocator.give_back(Extent(extent.start + length, extent.length - length))
        kept = Prefix(sequence.tenant, self._cuts.trace(sequence, length), Extent(extent.start, length))
        for free in self._prefixes.keep(kept):
            self._allocator.give_back(free)

    def forget_prefixes(self, tenant: str) -> None:
        for free in self._prefixes.drop_tenant(tenant):
            self._allocator.give_back(free)

    def _source(self, sequence: J, own: bytes) -> "_Source[J] | None":
        """The longest beginning of a sequence, by its trace `own`, that is cached for its tenant."""
        if self._cuts is None:
            return None
        best: J | None = None
        prefix, most = self._prefixes.longest(sequence.tenant, own)
        for holder, prompt in self._prompts.items():
            if holder.tenant == sequence.tenant:
                shared = common_tokens(own, prompt, most, at_most=holder.cached)
                best, most = (holder, shared) if shared else (best, most)
        length = self._cuts.before(sequence, min(most, sequence.most_reused))
        if not length:
            return None
        return _Source(length, prefix if best is None else None, best)

    def _taken_over(self, source: "_Source[J]", wanted: int) -> Extent | None:
        """The rows of a prefix that is used as a whole, made longer where they are."""
        prefix = source.prefix
        if prefix is None or source.length < prefix.extent.length:
            return None
        grown = self._allocator.extend(prefix.extent, wanted)
        if grown is not None:
            self._prefixes.drop(prefix)
        return grown

    def _copy(self, source: "_Source[J]", extent: Extent, *, compacted: bool) -> int:
        """Copies what a sequence begins with; how many tokens that is, 0 if their rows were overwritten."""
        rows = source.holder.extent if source.holder else None
        if source.prefix is not None:
            # Rows that were just freed keep their values until the next copy.
            rows = None if compacted else source.prefix.extent
            freed = (
                self._prefixes.drop(source.prefix) if source.length == source.prefix.extent.length else None
            )
            if freed is not None:
                self._allocator.give_back(freed)
        if rows is None:
            return 0
        self.moves.append(Move(rows.start, extent.start, source.length))
        return source.length

    def _fit(self, length: int, extent: Extent | None = None) -> Extent | None:
        """`extent` made longer, or another one, at the cost of prefixes; None if there is no such gap."""
        own = extent.length if extent else 0
        if self.available + own < length:
            return None
        while True:
            found = self._allocator.extend(extent, length) if extent else None
            found = found or self._allocator.take(length)
            if found is not None:
                return found
            oldest = self._prefixes.drop_oldest()
            if oldest is None:
                return None
            self._allocator.give_back(oldest)

    def _fit_compacted(self, length: int) -> Extent | None:
        """An extent behind all others, which are moved together; for when no prefix is left."""
        if self.available < length:
            return None
        held = [(holder.extent, holder) for holder in self._prompts if holder.extent is not None]
        for extent, holder in sorted(held, key=lambda each: each[0].start):
            self._allocator.give_back(extent)
            holder.extent = self._allocator.take(extent.length)
            if holder.extent is not None and holder.extent != extent and holder.cached:
                self.moves.append(Move(extent.start, holder.extent.start, holder.cached))
        return self._allocator.take(length)
