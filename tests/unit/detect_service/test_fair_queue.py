"""Turns of tenants on few threads: nobody waits for more than a slice of somebody else's work."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.harness.waiting import until as reached
from ttmark.detect_service.fair_work.fair_queue import FairQueue, QueueFull
from ttmark.shared.watermark.interruption import MadeOnce, aside, pause

PATIENCE = 30.0


class Heard:
    """Counts what the queue tells."""

    def __init__(self) -> None:
        self.begun = 0
        self.given_up = 0

    def started(self, waited_seconds: float) -> None:
        assert waited_seconds >= 0
        self.begun += 1

    def abandoned(self) -> None:
        self.given_up += 1


def queue_of_one(heard: Heard | None = None, most_jobs: int = 100) -> FairQueue:
    """A queue with one worker, whose turns end at every pause."""
    heard = heard or Heard()
    return FairQueue(
        workers=1, most_jobs=most_jobs, started=heard.started, abandoned=heard.abandoned, slice_seconds=0.0
    )


def until(done: threading.Event, begun: threading.Event | None = None) -> Callable[[], None]:
    """Work that ends at the first pause after `done`."""

    def work() -> None:
        if begun is not None:
            begun.set()
        while not done.is_set():
            pause()

    return work


async def test_another_tenant_has_its_turn_before_any_job_of_a_long_line_has_ended() -> None:
    queue, done = queue_of_one(), threading.Event()
    long = [asyncio.create_task(queue.run("dear", 1e6, until(done))) for _ in range(44)]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(queue.run("small", 1, lambda: "here"), PATIENCE) == "here"
    assert not any(task.done() for task in long)
    done.set()
    await asyncio.wait_for(asyncio.gather(*long), PATIENCE)


async def test_a_short_job_overtakes_a_long_one_of_its_own_tenant() -> None:
    queue, done, begun = queue_of_one(), threading.Event(), threading.Event()
    long = asyncio.create_task(queue.run("a", 1e6, until(done, begun)))
    await asyncio.to_thread(begun.wait, PATIENCE)
    assert await asyncio.wait_for(queue.run("a", 1, lambda: "short"), PATIENCE) == "short"
    assert not long.done()
    done.set()
    await asyncio.wait_for(long, PATIENCE)


async def test_a_long_job_is_not_overtaken_for_longer_than_it_takes_itself() -> None:
    queue, first = queue_of_one(), threading.Event()
    ended: list[str] = []
    blocker = asyncio.create_task(queue.run("a", 1, until(first)))
    await asyncio.sleep(0)

    async def shorts() -> None:
        for _ in range(6):  # each arrives when the one before has ended
            await queue.run("a", 4, lambda: ended.append("short"))

    long = asyncio.create_task(queue.run("a", 10, lambda: ended.append("long")))
    others = asyncio.create_task(shorts())
    await asyncio.sleep(0)
    first.set()
    await asyncio.wait_for(asyncio.gather(blocker, long, others), PATIENCE)
    assert ended.index("long") <= 3
    assert ended[0] == "short"


async def test_tenants_get_equal_time_whatever_the_number_of_their_jobs() -> None:
    queue, done = queue_of_one(), threading.Event()
    steps = {"many": 0, "one": 0}
    lock = threading.Lock()

    def work(tenant: str) -> Callable[[], None]:
        def count() -> None:
            while not done.is_set():
                with lock:
                    steps[tenant] += 1
                    if sum(steps.values()) >= 20_000:
                        done.set()
                pause()

        return count

    tasks = [asyncio.create_task(queue.run("many", 1e6, work("many"))) for _ in range(9)]
    tasks.append(asyncio.create_task(queue.run("one", 1e6, work("one"))))
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    # By time, which a busy machine does not hand out evenly; turns by jobs would give it a tenth.
    assert steps["one"] > 0.2 * sum(steps.values())


async def test_a_job_that_nobody_waits_for_ends_at_its_next_pause_or_never_begins() -> None:
    heard = Heard()
    queue, begun = queue_of_one(heard), threading.Event()
    never = threading.Event()
    running = asyncio.create_task(queue.run("a", 1, until(never, begun)))
    await asyncio.to_thread(begun.wait, PATIENCE)
    waiting = asyncio.create_task(queue.run("b", 1, until(never)))
    paused = [asyncio.create_task(queue.run("c", 1, until(never))) for _ in range(5)]
    await asyncio.sleep(0)
    for task in (waiting, running, *paused):
        task.cancel()
    await asyncio.wait((waiting, running, *paused))
    assert all(task.cancelled() for task in (waiting, running, *paused))
    assert await asyncio.wait_for(queue.run("d", 1, lambda: "free"), PATIENCE) == "free"
    assert heard.given_up == 7
    await reached(lambda: not queue.depth)


async def test_others_go_on_while_a_job_is_aside() -> None:
    queue, begun, done = queue_of_one(), threading.Event(), threading.Event()

    def work() -> str:
        with aside():
            begun.set()
            assert done.wait(PATIENCE)
        return "back"

    long = asyncio.create_task(queue.run("a", 1, work))
    await asyncio.to_thread(begun.wait, PATIENCE)
    same = asyncio.create_task(queue.run("a", 1, lambda: "own"))
    assert await asyncio.wait_for(queue.run("b", 1, lambda: "other"), PATIENCE) == "other"
    assert not same.done()  # its own tenant has one worker, and the job aside counts
    done.set()
    assert await asyncio.wait_for(asyncio.gather(long, same), PATIENCE) == ["back", "own"]


async def test_a_tenant_has_a_bounded_number_of_jobs_and_others_have_their_own() -> None:
    queue, done = queue_of_one(most_jobs=2), threading.Event()
    jobs = [asyncio.create_task(queue.run("a", 1, until(done))) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(QueueFull):
        await queue.run("a", 1, lambda: None)
    assert await asyncio.wait_for(queue.run("b", 1, lambda: 1), PATIENCE) == 1
    done.set()
    await asyncio.wait_for(asyncio.gather(*jobs), PATIENCE)


async def test_who_sends_the_next_job_upon_an_answer_finds_its_place_free() -> None:
    queue = queue_of_one(most_jobs=1)
    for number in range(2_000):
        assert await queue.run("a", 1, lambda number=number: number) == number  # type: ignore[misc]
    assert queue.depth == 0


async def test_work_in_the_background_has_a_small_share_while_others_want_turns(monkeypatch):
    turns: list[str] = []
    # A clock that goes on with each turn.
    clock = SimpleNamespace(perf_counter=lambda: float(len(turns)))
    monkeypatch.setattr("ttmark.detect_service.fair_work.fair_queue.time", clock)
    queue, both = queue_of_one(), threading.Event()

    def taking_turns(name: str) -> Callable[[], None]:
        def work() -> None:
            while not both.is_set():
                pause()
            while len(turns) < 220:
                turns.append(name)
                pause()

        return work

    tasks = [
        asyncio.create_task(queue.run("a", 1, taking_turns("background"), background=True)),
        asyncio.create_task(queue.run("b", 1, taking_turns("request"))),
    ]
    await asyncio.sleep(0.05)
    both.set()
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    assert 18 <= turns[:220].count("background") <= 22


class Slow:
    """Makes a value with pauses on the way."""

    @MadeOnce
    def value(self) -> int:
        for _ in range(9):
            pause()
            with aside():
                pass
        return 7


async def test_jobs_that_pause_while_they_make_a_value_keep_no_other_from_making_its_own() -> None:
    queue, slow = queue_of_one(), Slow()
    assert (slow.value, vars(slow)) == (7, {"value": 7})  # kept
    answers = await asyncio.wait_for(
        asyncio.gather(*(queue.run("a", 1, lambda: Slow().value) for _ in range(4))), PATIENCE
    )
    assert answers == [7] * 4
