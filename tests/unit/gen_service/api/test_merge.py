"""Several completions as one stream of events."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttmark.gen_service.api.pipeline import merge
from ttmark.gen_service.decoding.request import Delta


class Source:
    """A stream of single letters with pauses, which knows whether it was closed."""

    def __init__(self, text: str, pauses: list[int] | None = None, error: Exception | None = None) -> None:
        self.text = text
        self.pauses = pauses or []
        self.error = error
        self.closed = False

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        try:
            for index, letter in enumerate(self.text):
                for _ in range(self.pauses[index] if index < len(self.pauses) else 0):
                    await asyncio.sleep(0)
                yield Delta((ord(letter),), letter)
            if self.error is not None:
                raise self.error
        finally:
            self.closed = True


async def _texts(sources: list[Source]) -> list[str]:
    texts = [""] * len(sources)
    async with aclosing(merge([source.deltas() for source in sources], idle_seconds=60)) as events:
        async for piece in events:
            assert isinstance(piece, Delta)
            texts[piece.index] += piece.text
    return texts


@given(
    st.lists(
        st.tuples(st.text("abc", max_size=8), st.lists(st.integers(0, 5), max_size=8)), min_size=1, max_size=6
    )
)
def test_each_stream_arrives_whole_and_in_order(streams: list[tuple[str, list[int]]]) -> None:
    sources = [Source(text, pauses) for text, pauses in streams]
    assert asyncio.run(_texts(sources)) == [text for text, _ in streams]
    assert all(source.closed for source in sources)


async def test_the_first_error_is_raised_and_closes_the_other_streams() -> None:
    failing = Source("a", error=ValueError("broken"))
    endless = Source("b" * 10_000, pauses=[1] * 10_000)
    with pytest.raises(ValueError, match="broken"):
        await _texts([endless, failing])
    assert endless.closed
    assert failing.closed


async def test_a_slow_reader_holds_the_streams_back() -> None:
    source = Source("x" * 1000)
    events = merge([source.deltas()], idle_seconds=60)
    await anext(events)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not source.closed
    await events.aclose()
