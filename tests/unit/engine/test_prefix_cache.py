"""Finding the kept prefix that a prompt begins with."""

import time
from array import array

import numpy as np

from tests.harness.fake_job import FakeJob
from ttmark.gen_service.engine.kv_cache_manager import Cuts, Prefix, Prefixes, common_tokens
from ttmark.gen_service.engine.schedulable import Extent

CHUNK = 8


def job(tokens: list[int]) -> FakeJob:
    return FakeJob(len(tokens), len(tokens) + 4, tokens=tokens)


def numbers(count: int, start: int = 0) -> list[int]:
    return list(range(start, start + count))


def test_no_mark_of_a_piece_makes_two_tokens_equal() -> None:
    """Whatever ends at a token: a chunk of the prompt, a group of the completion, both or nothing."""
    cuts, marked = Cuts(2, exact=True), []
    for token in range(10):
        for prompt, group_ends in ((2, []), (1, []), (1, [2]), (2, [2])):
            asked = FakeJob(prompt, 6, tokens=[0, token])
            asked.group_ends = group_ends
            marked.append(array("i", cuts.trace(asked, 2))[1])
    assert len(set(marked)) == 10 * 4


def test_only_as_many_prefixes_are_kept_as_can_be_looked_through() -> None:
    prefixes = Prefixes(most=2)
    traces = [Cuts(CHUNK, exact=False).trace(job(numbers(10, start)), 10) for start in (0, 50, 90)]
    freed = [prefixes.keep(Prefix("acme", trace, Extent(10 * i, 10))) for i, trace in enumerate(traces)]
    assert freed == [[], [], [Extent(0, 10)]]


def test_looking_through_hundreds_of_long_prefixes_takes_less_than_a_millisecond() -> None:
    prefixes = Prefixes()
    common = numbers(6000)
    cuts = Cuts(256, exact=True)
    for other in range(256):
        asked = job([*common, *numbers(2000, 10_000 + 3000 * other)])
        prefixes.keep(Prefix("acme", cuts.trace(asked, 8000), Extent(8000 * other, 8000)))
    own = cuts.trace(job([*common, 7]), 6001)
    fastest = 1.0
    for _ in range(20):
        started = time.thread_time()
        _, shared = prefixes.longest("acme", own)
        fastest = min(fastest, time.thread_time() - started)
    assert shared == 6000
    assert fastest < 0.001


def test_common_tokens_are_counted_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    cuts = Cuts(CHUNK, exact=False)
    for _ in range(300):
        one, other = (rng.integers(0, 3, int(rng.integers(1, 9))).tolist() for _ in range(2))
        slow = 0
        while slow < min(len(one), len(other)) and one[slow] == other[slow]:
            slow += 1
        traces = [cuts.trace(job(tokens), len(tokens)) for tokens in (one, other)]
        more_than = int(rng.integers(0, 4))
        assert common_tokens(*traces) == slow
        if one[:more_than] == other[:more_than]:
            assert common_tokens(*traces, more_than) == (slow if slow > more_than else 0)
