"""Faults of single sequences and disconnects at any moment: neighbours get their tokens, no row is lost."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.harness.waiting import until
from tests.unit.gen_service.engine.asking import Faulty, collect, marking
from ttmark.gen_service.decoding.request import GenerationRequest, SamplingParams, SequenceFailed
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.watermark.schemes.watermark import Watermark

pytestmark = pytest.mark.long

NEIGHBOURS = 4
POISON = 299
TOKENS = 14
# On each of two models.
FAULTS, DISCONNECTS = 12, 80
BROKEN_AT_ONCE = 4
AT_ONCE = 40
STEPS_TO_FREE = 2


@pytest.fixture(scope="module")
def engine(model_folder: Path) -> Iterator[Engine]:
    running = Engine.load(str(model_folder), EngineSettings(max_sequences=8, kv_tokens=600))
    _poison(running)
    running.start()
    yield running
    running.stop(0)


def _poison(engine: Engine) -> None:
    """A pass over a prompt with the poisoned token fails, and after two of them its logits are NaN."""
    forward = engine._runner.forward

    def poisoned(pieces: Any) -> list[torch.Tensor]:
        counts = [list(getattr(piece, "tokens", ())).count(POISON) for piece in pieces]
        if 1 in counts:
            raise RuntimeError("injected")
        logits = forward(pieces)
        return [
            rows * float("nan") if count == 2 else rows for rows, count in zip(logits, counts, strict=True)
        ]

    engine._runner.forward = poisoned  # type: ignore[method-assign]


def request(index: int, watermark: Watermark | None = None, **sampling: Any) -> GenerationRequest:
    mark = marking(1 + index % 3, watermark)
    bias = {POISON: -1e4}
    params = SamplingParams(TOKENS, top_k=10, seed=index, ignore_eos=True, logit_bias=bias, **sampling)
    return GenerationRequest(str(index), tuple(range(10 + index, 30 + index)), params, mark)


def broken_request(rng: np.random.Generator, blocks: int) -> GenerationRequest:
    """A request that fails in one of five ways, if at a block at one of its first `blocks`."""
    fuse = int(rng.integers(0, blocks))
    healthy = request(1)
    assert healthy.marking is not None
    return [
        lambda: request(1, Faulty(fuse, silent=False)),
        lambda: request(1, Faulty(fuse, silent=True)),
        lambda: replace(healthy, marking=replace(healthy.marking, prf_key=b"short")),
        lambda: replace(healthy, prompt_ids=(5, POISON, 6)),
        lambda: replace(healthy, prompt_ids=(5, POISON, POISON)),
    ][int(rng.integers(0, 5))]()


async def inject(engine: Engine, faults: int) -> None:
    rng = np.random.default_rng(3)
    expected = [await collect(engine, request(index)) for index in range(NEIGHBOURS)]
    report = expected[1][-1].report
    assert report is not None
    for _ in range(0, faults, BROKEN_AT_ONCE):
        asked = [
            *(request(index) for index in range(NEIGHBOURS)),
            *(broken_request(rng, report.watermarked_blocks) for _ in range(BROKEN_AT_ONCE)),
        ]
        results = await asyncio.gather(*(collect(engine, each) for each in asked), return_exceptions=True)
        assert all(isinstance(result, SequenceFailed) for result in results[NEIGHBOURS:])
        assert results[:NEIGHBOURS] == expected
    await until(lambda: engine.stats.cached_tokens == 0, 20.0)


class Leaving:
    """Counts the steps that an engine still makes for a sequence after its client has gone."""

    def __init__(self, engine: Engine) -> None:
        self.slowest = 0
        self.count = 0
        self._engine, self._stepper = engine, engine._stepper
        self._gone_at: dict[Any, int] = {}
        self._cancel, self._leave = engine._cancel, self._stepper._leave
        engine._cancel = self._cancelled  # type: ignore[method-assign]
        self._stepper._leave = self._left  # type: ignore[method-assign]

    def _cancelled(self, sequence: Any) -> None:
        self._gone_at[sequence] = self._stepper.stats.passes
        self._cancel(sequence)

    def _left(self, sequence: Any) -> None:
        self._leave(sequence)
        if sequence in self._gone_at:
            self.count += 1
            self.slowest = max(self.slowest, self._stepper.stats.passes - self._gone_at.pop(sequence))

    def stop(self) -> None:
        self._engine._cancel, self._stepper._leave = self._cancel, self._leave  # type: ignore[method-assign]


async def disconnect(engine: Engine, clients: int) -> Leaving:
    """Clients leave before the first token, after some, or just when they have all; one always stays."""
    rng = np.random.default_rng(4)
    expected = await collect(engine, request(0))
    leaving = Leaving(engine)

    async def leave(index: int) -> None:
        stream: Any = engine.generate(request(index % 20))
        stay = int(rng.integers(0, TOKENS + 2))
        if stay % 3 == 0:
            await asyncio.sleep(float(rng.random()) * 0.05)
        try:
            for _ in range(stay):
                await anext(stream)
        except StopAsyncIteration:
            return
        await stream.aclose()

    for start in range(0, clients, AT_ONCE):
        staying = asyncio.create_task(collect(engine, request(0)))
        await asyncio.gather(*(leave(index) for index in range(start, min(clients, start + AT_ONCE))))
        assert await staying == expected
    await until(lambda: engine.stats.running == 0 and engine.stats.cached_tokens == 0, 20.0)
    leaving.stop()
    assert leaving.slowest <= STEPS_TO_FREE
    assert leaving.count > clients / 4
    return leaving


def tiers(short: int, full: int) -> list[Any]:
    return [short, pytest.param(full, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]


@pytest.mark.parametrize("faults", tiers(FAULTS, 500))
async def test_faults_of_single_sequences_change_nothing_for_their_neighbours(
    engine: Engine, record_result: Callable[[str, str, str], None], faults: int
) -> None:
    await inject(engine, faults)
    if faults > FAULTS:
        record_result(
            f"{faults} faults injected into single sequences, {engine.model_id} model",
            "0 neighbours affected",
            f"0 of {faults * NEIGHBOURS // BROKEN_AT_ONCE:,} neighbours affected, 0 cache rows left",
        )


@pytest.mark.parametrize("clients", tiers(DISCONNECTS, 5_000))
async def test_disconnects_at_any_moment_leave_no_cache_row_behind(
    engine: Engine, record_result: Callable[[str, str, str], None], clients: int
) -> None:
    leaving = await disconnect(engine, clients)
    if clients > DISCONNECTS:
        record_result(
            f"{clients:,} disconnects in every phase, {engine.model_id} model",
            f"0 slots leaked, slots freed within {STEPS_TO_FREE} steps",
            f"0 slots leaked; {leaving.count:,} left early, the last freed after {leaving.slowest} step(s)",
        )
