"""Beginnings of texts whose cache rows are kept after their sequence has left. Plain numbers, no tensors."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass

from ttmark.gen_service.engine.job import Extent, Job

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

    def trace(self, job: Job, count: int) -> bytes:
        """The first `count` tokens of a sequence; if exact, with a mark on the last of each piece."""
        if not self._exact:
            return array("i", job.tokens[:count]).tobytes()
        marked = array("i", [token << 2 for token in job.tokens[:count]])
        prompt = min(count, job.prompt_length)
        steps = (self._chunk, job.prompt_cut)
        ends = {end for step in steps for end in range(step, prompt + 1, step)}
        if count >= job.prompt_length:
            ends.add(job.prompt_length)
        for end in ends:
            marked[end - 1] += _CHUNK_END
        for end in job.group_ends[: bisect_right(job.group_ends, count)]:
            marked[end - 1] += _GROUP_END
        return marked.tobytes()

    def before(self, job: Job, place: int) -> int:
        """The last place, up to `place`, after which a sequence may go on."""
        if not self._exact:
            return 0 if job.repeatable else place
        if place < job.prompt_length:
            return self._in_prompt(job, place)
        groups = bisect_right(job.group_ends, place)
        return job.group_ends[groups - 1] if groups else job.prompt_length

    def useful(self, job: Job) -> int:
        """How many cached tokens of a sequence that has ended others can go on from."""
        known = min(job.cached, job.most_reused + 1)  # a text that was read is of use to nobody
        if self._exact:
            return self._in_prompt(job, min(known, job.prompt_length))
        return known

    def _in_prompt(self, job: Job, place: int) -> int:
        return max(place - place % self._chunk, place - place % job.prompt_cut)


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
        """Cache rows that they take."""
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
        """A prefix is used: it becomes the last to go."""
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
        """Forgets all of a tenant's; their rows."""
        dropped = [prefix.extent for prefix in self._kept if prefix.tenant == tenant]
        self._kept = [prefix for prefix in self._kept if prefix.tenant != tenant]
        return dropped


def trace_part(trace: bytes, count: int) -> bytes:
    """The first `count` tokens of a trace."""
    return trace[: count * _WIDTH]


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
