"""Allocation of cache rows."""

from hypothesis import given
from hypothesis import strategies as st

from ttmark.gen_service.engine.kv_cache_manager import ExtentAllocator
from ttmark.gen_service.engine.schedulable import Extent

CAPACITY = 60


@given(st.lists(st.tuples(st.sampled_from(["take", "extend", "give_back"]), st.integers(1, 25)), max_size=60))
def test_extents_never_overlap_and_no_row_is_lost(actions: list[tuple[str, int]]) -> None:
    allocator = ExtentAllocator(CAPACITY)
    held: list[Extent] = []
    for action, number in actions:
        if action == "take" and (extent := allocator.take(number)):
            held.append(extent)
        elif held and action == "give_back":
            allocator.give_back(held.pop(number % len(held)))
        elif held and action == "extend":
            index = number % len(held)
            held[index] = allocator.extend(held[index], held[index].length + number) or held[index]
        rows = [row for extent in held for row in range(extent.start, extent.stop)]
        assert len(rows) == len(set(rows))
        assert set(rows) <= set(range(CAPACITY))
        assert allocator.free_rows == CAPACITY - len(rows)
    for extent in held:
        allocator.give_back(extent)
    assert allocator.take(CAPACITY) == Extent(0, CAPACITY)


def test_what_does_not_fit_is_refused() -> None:
    allocator = ExtentAllocator(10)
    first = allocator.take(6)
    assert first is not None
    assert allocator.take(5) is None
    assert allocator.extend(first, 11) is None
    assert allocator.extend(first, 10) == Extent(0, 10)
