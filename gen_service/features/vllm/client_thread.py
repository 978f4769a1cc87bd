"""The thread that vLLM's client lives in: starts vLLM, hands requests over, and their pieces back."""

import asyncio
import hashlib
import pickle
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import structlog
import zmq
import zmq.asyncio
from numpy.typing import NDArray
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.metrics.loggers import StatLoggerBase

from ttmark.gen_service.decoding.request import Delta, ReadingRequest, SequenceFailed
from ttmark.gen_service.engine.errors import Draining, EngineDied, EngineError, OutOfTime
from ttmark.gen_service.engine.loop.stream import Mailbox, Outbox
from ttmark.gen_service.engine.scheduling.fair_share import DrainRate, check_place, reading_places
from ttmark.gen_service.features.vllm.reading_gate import ReadingGate
from ttmark.gen_service.features.vllm.worker.worker_messages import Failure, StepReport, Ticket, WorkerOpening
from ttmark.gen_service.features.vllm.worker.worker_requests import TICKET

if TYPE_CHECKING:
    Base = Any
else:
    Base = StatLoggerBase


@dataclass(eq=False, slots=True)
class Job:
    """A request in hand.

    Attributes:
        tokens: that vLLM computes beforehand.
        most_tokens: that it may make.
        whole_prompt: whether nothing is taken from the prefix cache.
        started: whether it has had a place in a step.
        logprobs: of the tokens of a text that was read.
    """

    ticket: Ticket
    tokens: list[int]
    most_tokens: int
    mailbox: Mailbox
    whole_prompt: bool
    arrived: float = field(default_factory=time.monotonic)
    started: bool = False
    logprobs: NDArray[np.float64] | None = None
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def tenant(self) -> str:
        return self.ticket.request.tenant

    @property
    def reading(self) -> bool:
        return isinstance(self.ticket.request, ReadingRequest)

    def parameters(self) -> SamplingParams:
        """What vLLM is told: to go on until it is told to stop, and the ticket's name."""
        return SamplingParams(
            max_tokens=self.most_tokens,
            temperature=0.0,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            extra_args={TICKET: self.ticket.name},
            skip_reading_prefix_cache=self.whole_prompt,
        )


class Levels(Base):  # type: ignore[misc]
    """A logger in vLLM's sense, which keeps the last figures.

    Attributes:
        cache_usage: share of the KV cache's blocks that requests hold.
        preemptions: since the start.
    """

    def __init__(self) -> None:
        self.cache_usage = 0.0
        self.preemptions = 0

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
        if scheduler_stats is not None:
            self.cache_usage = scheduler_stats.kv_cache_usage
        if iteration_stats is not None:
            self.preemptions += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Nothing is logged here."""


def start_vllm(config: Any, levels: Levels) -> Any:
    """vLLM's client, with the engine behind it; to be called in the event loop that it will live in.

    A terminal sends SIGINT to all processes of a command. vLLM's would give up what is in hand, which the
    service has yet to finish: they start with the signal blocked, and end when the client is shut down.
    """
    resource_tracker.ensure_running()  # unblocks the signal when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return AsyncLLM.from_vllm_config(
            config,
            stat_loggers=[lambda *_: levels],
            enable_log_requests=False,
            disable_log_stats=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_LAST_PIECE_SECONDS = 10.0
_WATCH_SECONDS = 0.5


class Host:
    """Owns the thread, its event loop and vLLM's client. `submit`, `cancel` and `stop` are for other threads.

    Attributes:
        jobs: requests in hand by the names of their tickets.
        levels: what vLLM's scheduler says.
        on_report: called with each report of the worker.
    """

    def __init__(
        self, config: Any, *, max_requests: int, reading_share: float, request_seconds: float | None
    ) -> None:
        self.jobs: dict[str, Job] = {}
        self.levels = Levels()
        self.on_report: Callable[[StepReport], None] = lambda _: None
        self.accepting = False
        self._config = config
        self._max_requests = max_requests
        self._max_readings = reading_places(max_requests, reading_share)
        self._gate: ReadingGate[Job] = ReadingGate(reading_share)
        self._request_seconds = request_seconds
        self._drain_rate = DrainRate()
        self._outbox = Outbox()
        self._failures: Counter[str] = Counter()  # by tenant
        self._chores: set[asyncio.Task[None]] = set()
        self._receiver: asyncio.Task[None] | None = None
        self._llm: Any = None
        self._reports: Any = None
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._stop_at = float("inf")
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ttmark-vllm", daemon=True)
        self._folder = tempfile.TemporaryDirectory(prefix="ttmark-")  # others may not enter it

    @property
    def died(self) -> bool:
        """Whether vLLM's engine, or what takes its reports, has ended on its own."""
        if self._closed or self._llm is None:
            return False
        return bool(self._llm.errored) or (self._receiver is not None and self._receiver.done())

    def open(self, folder: Path, eos_token_ids: tuple[int, ...], vocab_size: int, max_branches: int) -> None:
        """Starts the thread and vLLM; takes as long as loading the model does."""
        address = f"ipc://{self._folder.name}/reports"
        opening = WorkerOpening(address, folder, eos_token_ids, vocab_size, max_branches)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(opening), self._loop).result()
        except Exception:
            self.stop(0)
            raise

    async def _open(self, opening: WorkerOpening) -> None:
        self._reports = zmq.asyncio.Context.instance().socket(zmq.PULL)
        self._reports.setsockopt(zmq.RCVHWM, 0)
        self._reports.bind(opening.address)
        self._llm = start_vllm(self._config, self.levels)
        await self._llm.collective_rpc("ttmark_open", args=(pickle.dumps(opening),))
        self._receiver = asyncio.create_task(self._receive())
        self._chores |= {self._receiver, asyncio.create_task(self._watch())}

    def check_queue(self, tenant: str, *, reading: bool = False) -> None:
        """See `Generator`; readings have places of their own.

        Raises:
            Overloaded: see `check_place`.
        """
        held = Counter(job.tenant for job in list(self.jobs.values()) if job.reading is reading)
        check_place(tenant, held, self._max_readings if reading else self._max_requests, self._drain_rate)

    def submit(self, job: Job) -> None:
        """Takes a request on.

        Raises:
            Draining: not started, stopping or dead.
            Overloaded: see `check_queue`.
        """
        with self._lock:
            if not self.accepting or self.died:
                raise Draining("the engine takes no new requests")
            self.check_queue(job.tenant, reading=job.reading)
            self.jobs[job.ticket.name] = job
        with suppress(RuntimeError):  # the loop is closed, and the job has failed with the others
            self._loop.call_soon_threadsafe(self._begin, job)

    def cancel(self, job: Job) -> None:
        with suppress(RuntimeError):  # the loop is closed: so is everything
            self._loop.call_soon_threadsafe(self._leave, job)

    def stop(self, drain_seconds: float) -> None:
        """Refuses new requests, gives those in hand `drain_seconds` to finish, then fails what is left."""
        with self._lock:
            self.accepting = False
            self._stop_at = min(self._stop_at, time.monotonic() + drain_seconds)
        while self.jobs and not self.died and time.monotonic() < self._stop_at:
            time.sleep(0.01)
        with self._closing:
            if self._closed or not self._thread.is_alive():
                return
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._folder.cleanup()

    def call(self, method: str) -> list[Any]:
        return list(asyncio.run_coroutine_threadsafe(self._llm.collective_rpc(method), self._loop).result())

    def forget_prefixes(self) -> bool:
        """Empties the prefix cache; false while requests hold blocks."""
        return bool(asyncio.run_coroutine_threadsafe(self._llm.reset_prefix_cache(), self._loop).result())

    def _begin(self, job: Job) -> None:
        if job.ticket.name not in self.jobs:
            return  # cancelled already
        if self._request_seconds is not None:
            left = job.arrived + self._request_seconds - time.monotonic()
            job.timer = self._loop.call_later(left, self._fail, job, OutOfTime("out of time"))
        if job.reading:
            self._gate.add(job)
            self._let_readings_through()
        else:
            job.task = self._loop.create_task(self._serve(job))

    def _let_readings_through(self) -> None:
        if self._closed:
            return
        writing = any(not job.reading for job in self.jobs.values())
        for job in self._gate.due(writing=writing):
            job.task = self._loop.create_task(self._serve(job))

    async def _serve(self, job: Job) -> None:
        """Sees a request through vLLM; its pieces come by reports."""
        name = job.ticket.name
        try:
            own = sum(other.tenant == job.tenant for other in list(self.jobs.values()))
            await self._llm.collective_rpc("ttmark_take", args=(job.ticket.sealed(),))
            # vLLM mixes it into the names of cached blocks: a tenant's own, and another after each failure.
            salt = hashlib.sha256(f"{self._failures[job.tenant]} {job.tenant}".encode()).hexdigest()
            prompt = {"prompt_token_ids": job.tokens, "cache_salt": salt}
            async for _ in self._llm.generate(prompt, job.parameters(), name, priority=own):
                pass
            await asyncio.sleep(_LAST_PIECE_SECONDS)  # its last piece, on another way, cuts this short
            self._fail(job, SequenceFailed("vLLM ended the request"))
        except EngineDeadError:
            self._fail(job, EngineDied("vLLM's engine has ended"))
        except Exception as error:
            self._fail(job, SequenceFailed.because(error))
        finally:
            if not job.started and not self.died and not self._closed:
                forgetting = self._loop.create_task(self._forget(name))
                self._chores.add(forgetting)
                forgetting.add_done_callback(self._chores.discard)

    async def _forget(self, name: str) -> None:
        with suppress(EngineDeadError):
            await self._llm.collective_rpc("ttmark_forget", args=(name,))

    async def _watch(self) -> None:
        """Fails what is in hand once vLLM is dead: calls that it has not answered stay without an answer."""
        while not self.died:  # noqa: ASYNC110 - vLLM tells nobody
            await asyncio.sleep(_WATCH_SECONDS)
        for job in list(self.jobs.values()):
            self._fail(job, EngineDied("vLLM's engine has ended"))

    async def _receive(self) -> None:
        while True:
            sent = await self._reports.recv()
            report: StepReport = pickle.loads(sent)  # noqa: S301 - from our own child process
            for name in [name for name in report.started if name in self.jobs]:
                self.jobs[name].started = True
            self._gate.wrote(sum(rows for kind, rows in report.rows.items() if kind != "reading"))
            self.on_report(report)
            for name in [name for name in report.outcomes if name in self.jobs]:
                self._deliver(self.jobs[name], report.outcomes[name])
            for name in [name for name in report.readings if name in self.jobs]:
                self.jobs[name].logprobs = report.readings[name]
                self._deliver(self.jobs[name], Delta((), "", "stop"))
            self._let_readings_through()
            self._outbox.send()

    def _deliver(self, job: Job, outcome: Delta | Failure) -> None:
        if isinstance(outcome, Failure):
            log = structlog.get_logger("ttmark.engine")
            log.error("completion_failed", request_id=job.ticket.request.request_id, origin=outcome.origin)
            self._failures[job.tenant] += 1
            self._fail(job, SequenceFailed(outcome.message))
            return
        if outcome.finish_reason is not None:
            self._leave(job)
        self._outbox.add(job.mailbox, outcome)

    def _fail(self, job: Job, error: EngineError | SequenceFailed) -> None:
        if job.ticket.name in self.jobs:
            self._leave(job)
            self._outbox.add(job.mailbox, error)
            self._outbox.send()

    def _leave(self, job: Job) -> None:
        if self.jobs.pop(job.ticket.name, None) is None:
            return
        self._gate.remove(job)
        if job.timer is not None:
            job.timer.cancel()
        if job.task is not None and job.task is not asyncio.current_task(self._loop):
            job.task.cancel()
        self._drain_rate.tick()
        if not self.jobs:
            self._drain_rate.rest()
        self._let_readings_through()

    async def _close(self) -> None:
        end: EngineError = EngineDied("vLLM's engine has ended") if self.died else Draining("stopping")
        self._closed = True
        tasks = [job.task for job in self.jobs.values() if job.task is not None]
        for job in list(self.jobs.values()):
            self._fail(job, end)
        await asyncio.gather(*tasks, return_exceptions=True)
        for chore in self._chores:
            chore.cancel()
        if self._llm is not None:
            self._llm.shutdown()
        if self._reports is not None:
            self._reports.close(linger=0)
