"""The engine: one model, one thread, many completions at a time."""

import math
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, ReadingRequest, SequenceFailed
from ttmark.gen_service.engine.errors import Draining, EngineDied, EngineError, check_length
from ttmark.gen_service.engine.loop.cached_sequence import PROMPT_CUT, CachedSequence, TextReading
from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics, StepRecorder
from ttmark.gen_service.engine.loop.step import Arrivals, EngineStats, Stepper
from ttmark.gen_service.engine.loop.stream import DeltaStream, Mailbox
from ttmark.gen_service.engine.memory import available_memory
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.grouping import grouped_matrices
from ttmark.gen_service.engine.model.loaded_model import LoadedModel
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.scheduling.fair_share import check_place, reading_places
from ttmark.gen_service.engine.scheduling.kv_cache_rows import Cuts, ExtentAllocator
from ttmark.gen_service.engine.scheduling.scheduler import Scheduler
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.observability.memory import release_free_memory

_IDLE_SECONDS = 5.0


class Engine:
    """Generates completions of one model, watermarked or not, with continuous batching.

    `load`, then `start`, then `generate` from any asyncio task, then `stop`. `_run` and `_arrivals` run in a
    thread of its own, all else in others.
    """

    def __init__(self, loaded: LoadedModel, settings: EngineSettings) -> None:
        self.model_id = loaded.name
        facts = loaded.facts
        self.vocab_size = facts.vocab_size
        self.tokenizer = loaded.tokenizer
        self.eos_token_ids = tuple(facts.ends)
        self.start_token_id = facts.start
        self._settings = settings
        self._prompt_cut = PROMPT_CUT if settings.reproducible else settings.prefill_chunk
        longest = min(facts.longest, settings.context_length or facts.longest)
        self.kv_tokens = settings.kv_tokens or _affordable_tokens(loaded, longest, settings)
        self.context_length = min(longest, self.kv_tokens)
        self._runner = loaded.acceleration.runner(
            loaded.model, KvCache(self.kv_tokens), reproducible=settings.reproducible
        )
        self._runner.measure_row_counts()
        scheduler: Scheduler[CachedSequence] = Scheduler(
            ExtentAllocator(self.kv_tokens),
            max_sequences=settings.max_sequences,
            step_rows=settings.step_rows,
            prefill_chunk=settings.prefill_chunk,
            cuts=Cuts(settings.prefill_chunk, exact=settings.reproducible) if settings.prefix_cache else None,
            reading_share=settings.reading_share,
        )
        self._decoder = Decoder(min(settings.max_branches or settings.step_rows, settings.step_rows))
        self._stepper = Stepper(self._runner, scheduler, self._decoder)
        self._max_requests = settings.max_sequences + settings.max_waiting
        self._max_readings = reading_places(self._max_requests, settings.reading_share)
        self._wake = threading.Condition()
        self._inbox: Arrivals = []
        self._accepting = self._halt = self._died = False
        self._thread = threading.Thread(target=self._run, name="ttmark-engine", daemon=True)

    @classmethod
    def load(cls, model: str, settings: EngineSettings) -> "Engine":
        """Loads a model folder or hub id, checks it against transformers and warms it up.

        Raises:
            ModelLoadError: with one clear line.
        """
        if isinstance(settings.threads, int):
            torch.set_num_threads(settings.threads)
        return cls(load_model(model, settings), settings)

    @property
    def ready(self) -> bool:
        return self._accepting and self._thread.is_alive()

    @property
    def alive(self) -> bool:
        return not self._died

    @property
    def running(self) -> int:
        return self.stats.running

    @property
    def waiting(self) -> int:
        """Requests without a place in the steps, those included that the thread has not looked at."""
        return max(0, self._in_hand - self._stepper.running)

    @property
    def _in_hand(self) -> int:
        return len(self._inbox) + len(self._stepper.mailboxes)

    @property
    def stats(self) -> EngineStats:
        return self._stepper.stats

    @property
    def runs_as(self) -> dict[str, Any]:
        """Number format, CPU threads, how matrices lie, and for which processors kernels were compiled."""
        runner = self._runner
        grouped = grouped_matrices(runner.model, None) if runner.fused is None else []
        return {
            "dtype": str(runner.model.dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "matrices": f"int{min(each.bits for each in grouped)}" if grouped else runner.weights,
            "kernels": None if runner.kernels is None else runner.kernels.level,
        }

    def record_in(self, metrics: EngineMetrics) -> None:
        """Records every step in `metrics`; to be called before `start`."""
        stepper = self._stepper
        metrics.watch(
            self.model_id,
            running=lambda: stepper.running,
            waiting=lambda: self.waiting,
            levels={
                "ttmark_engine_waiting_tenants": lambda: stepper.stats.waiting_tenants,
                "ttmark_engine_kv_cache_used_tokens": lambda: stepper.stats.cached_tokens,
                "ttmark_engine_kv_cache_prefix_tokens": lambda: stepper.stats.prefix_tokens,
                "ttmark_engine_kv_cache_capacity_tokens": lambda: self.kv_tokens,
                "ttmark_engine_branch_budget": lambda: self._decoder.branch_budget,
            },
        )
        stepper.recorder = StepRecorder(metrics, self.model_id)

    def start(self) -> None:
        self._accepting = True
        self._thread.start()

    def stop(self, drain_seconds: float) -> None:
        """Takes no new requests, lets those in hand finish for at most `drain_seconds`, then ends. Blocks.

        What is not finished by then fails with `Draining`. A second call with less time cuts the first short.
        """
        with self._wake:
            self._accepting = False
        deadline = time.monotonic() + drain_seconds
        while self._thread.is_alive() and time.monotonic() < deadline:
            with self._wake:
                if not self._in_hand:
                    break
            time.sleep(0.01)
        with self._wake:
            self._halt = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def check_queue(self, tenant: str, *, reading: bool = False) -> None:
        """See `Generator`; `generate` may find the place taken nevertheless. Readings have their own places.

        Raises:
            Overloaded: see `check_place`.
        """
        arrivals = [sequence for sequence, _ in list(self._inbox)]
        everything = (*arrivals, *list(self._stepper.mailboxes))
        held = Counter(each.tenant for each in everything if isinstance(each, TextReading) is reading)
        most = self._max_readings if reading else self._max_requests
        check_place(tenant, held, most, self._stepper.drain_rate)

    def generate(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        """See `Generator`; to be called in a running event loop. Dropping the iterator cancels, too.

        Raises:
            ContextTooLong, Overloaded, Draining: at once.
            SequenceFailed, OutOfTime, Draining, EngineDied: while iterating.
        """
        check_length(request, self.context_length)
        return self._submit(
            CachedSequence(request, self.tokenizer, self.eos_token_ids, self._deadline(), self._prompt_cut)
        )

    async def read(self, request: ReadingRequest) -> NDArray[np.float64]:
        """See `Generator`. What the first token is without a prompt the model does not say: it is certain."""
        check_length(request, self.context_length)
        reading = TextReading(request, self.tokenizer, self._deadline(), self._prompt_cut)
        async with aclosing(self._submit(reading)) as stream:
            async for _ in stream:
                pass
        return reading.logprobs.values

    def _submit(self, sequence: CachedSequence) -> DeltaStream:
        mailbox = Mailbox(lambda: self._cancel(sequence))
        with self._wake:
            if not self.ready:
                raise Draining("the engine takes no new requests")
            self.check_queue(sequence.tenant, reading=isinstance(sequence, TextReading))
            self._inbox.append((sequence, mailbox))
            self._stepper.recorder.arrived(sequence)
            self._wake.notify()
        return DeltaStream(mailbox)

    def _cancel(self, sequence: CachedSequence) -> None:
        """Marks a sequence; its rows are free before the pass after the current one."""
        sequence.cancelled = True

    def _deadline(self) -> float:
        limit = self._settings.request_seconds
        return math.inf if limit is None else time.monotonic() + limit

    def _run(self) -> None:
        end: EngineError = EngineDied("the engine's thread has ended")
        try:
            while (arrivals := self._arrivals()) is not None:
                try:
                    self._stepper.step(arrivals)
                except Exception as error:  # a fault of the engine itself: its thread must outlive it
                    self._stepper.fail_all(SequenceFailed.because(error))
            end = Draining("the engine is stopping")
        finally:
            self._died = isinstance(end, EngineDied)
            with self._wake:
                self._accepting = False
                arrivals, self._inbox = self._inbox, []
            self._stepper.abandon(arrivals, end)

    def _arrivals(self) -> Arrivals | None:
        """Waits for something to do, and takes what has come in; None once the thread is to halt."""
        patience: float | None = _IDLE_SECONDS
        with self._wake:
            while not (self._in_hand or self._halt):
                if not self._wake.wait(patience):
                    release_free_memory()  # passes of many rows leave much
                    patience = None
            if self._halt:
                return None
            arrivals, self._inbox = self._inbox, []
            return arrivals


def _affordable_tokens(loaded: LoadedModel, longest: int, settings: EngineSettings) -> int:
    """Tokens that the engine's share of the free memory holds, at most `max_sequences` full contexts."""
    device = next(loaded.model.parameters()).device
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available_memory()
    affordable = int(free * settings.memory_share) // loaded.facts.bytes_per_token
    return max(min(affordable, settings.max_sequences * longest), 1)
