"""The vLLM engine: the same contract as the embedded one, with vLLM's scheduler, cache and kernels."""

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import AutoConfig, GenerationConfig

from ttmark.gen_service.decoding.request import Delta, GenerationRequest, ReadingRequest
from ttmark.gen_service.engine.errors import ModelLoadError, check_length
from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics
from ttmark.gen_service.engine.loop.stream import DeltaStream, Mailbox
from ttmark.gen_service.engine.model.loaded_model import boundary_tokens
from ttmark.gen_service.features.vllm.arguments import SPARE_TOKENS, engine_config
from ttmark.gen_service.features.vllm.client_thread import Host, Job
from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings
from ttmark.gen_service.features.vllm.worker.worker_messages import StepReport, Ticket
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing


class VllmEngine:
    """Generates completions of one model by vLLM, watermarked or not.

    `load`, then `start`, then `generate` from any asyncio task, then `stop`.
    """

    def __init__(self, folder: Path, settings: VllmSettings) -> None:
        try:
            self.tokenizer = TextTokenizer.load(folder)
        except TokenizerMissing as error:
            raise ModelLoadError(f"{folder.name}: {error}") from error
        config = engine_config(folder, settings)
        self.model_id = settings.model_id or folder.name
        self.vocab_size = int(config.model_config.get_vocab_size())
        self.eos_token_ids, self.start_token_id = boundary_tokens(
            _generation_config(folder), AutoConfig.from_pretrained(folder).get_text_config(), self.vocab_size
        )
        self.context_length = int(config.model_config.max_model_len) - SPARE_TOKENS
        self._max_branches = settings.max_branches
        self._metrics: EngineMetrics | None = None
        self._preemptions = 0
        self._host = Host(
            config,
            max_requests=settings.max_sequences + settings.max_waiting,
            reading_share=settings.reading_share,
            request_seconds=settings.request_seconds,
        )
        self._host.on_report = self._record
        try:
            self._host.open(folder, self.eos_token_ids, self.vocab_size, settings.max_branches)
        except Exception as error:
            raise ModelLoadError(f"{folder.name}: vLLM did not start; its log says why") from error
        self.kv_tokens = int(config.cache_config.num_gpu_blocks * config.cache_config.block_size)

    @classmethod
    def load(cls, model: str, settings: VllmSettings) -> "VllmEngine":
        """Loads a model folder into vLLM.

        Raises:
            ModelLoadError: with one clear line.
        """
        return cls(Path(model).resolve(), settings)

    @property
    def ready(self) -> bool:
        return self._host.accepting and self.alive

    @property
    def alive(self) -> bool:
        return not self._host.died

    @property
    def running(self) -> int:
        return sum(job.started for job in list(self._host.jobs.values()))

    @property
    def waiting(self) -> int:
        """Requests that have not."""
        return len(self._host.jobs) - self.running

    @property
    def preemptions(self) -> int:
        """Requests that vLLM took out of its cache to compute them again, since the start."""
        return self._host.levels.preemptions

    def record_in(self, metrics: EngineMetrics) -> None:
        host = self._host
        metrics.watch(
            self.model_id,
            running=lambda: self.running,
            waiting=lambda: self.waiting,
            levels={
                "ttmark_engine_waiting_tenants": lambda: len(
                    {j.tenant for j in list(host.jobs.values()) if not j.started}
                ),
                "ttmark_engine_kv_cache_used_tokens": lambda: (
                    host.levels.cache_usage * self.kv_tokens if host.jobs else 0
                ),
                "ttmark_engine_kv_cache_prefix_tokens": lambda: 0,  # vLLM does not say
                "ttmark_engine_kv_cache_capacity_tokens": lambda: self.kv_tokens,
                "ttmark_engine_branch_budget": lambda: self._max_branches,
            },
        )
        self._metrics = metrics

    def start(self) -> None:
        self._host.accepting = True

    def stop(self, drain_seconds: float) -> None:
        self._host.stop(drain_seconds)

    def check_queue(self, tenant: str) -> None:
        self._host.check_queue(tenant)

    def generate(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        check_length(request, self.context_length)
        if request.sampling.seed is None:  # every rank draws, and all must draw the same
            sampling = replace(request.sampling, seed=secrets.randbits(64))
            request = replace(request, sampling=sampling)
        tokens, more = list(request.prompt_ids), request.sampling.max_tokens
        return DeltaStream(self._submit(request, tokens, more, whole_prompt=request.repeatable).mailbox)

    async def read(self, request: ReadingRequest) -> NDArray[np.float64]:
        check_length(request, self.context_length)
        # What the model says after the last token nobody asks for.
        tokens = [*request.prompt_ids, *request.text_ids][:-1]
        job = self._submit(request, tokens, 1, whole_prompt=True)
        async with aclosing(DeltaStream(job.mailbox)) as stream:
            async for _ in stream:
                pass
        if job.logprobs is None:
            raise AssertionError("a reading ended without its log-probabilities")
        return job.logprobs

    def _submit(
        self, request: GenerationRequest | ReadingRequest, tokens: list[int], more: int, *, whole_prompt: bool
    ) -> Job:
        mailbox = Mailbox(lambda: self._host.cancel(job))
        job = Job(Ticket(secrets.token_hex(16), request), tokens, more, mailbox, whole_prompt)
        self._host.submit(job)
        return job

    def _record(self, report: StepReport) -> None:
        if self._metrics is None:
            return
        metrics, model, now = self._metrics, self.model_id, time.monotonic()
        for name, reused in report.started.items():
            metrics.reused.labels(model).inc(reused)
            if (job := self._host.jobs.get(name)) is not None:
                metrics.queue.labels(model).observe(now - job.arrived)
        if sum(report.rows.values()):
            metrics.step_rows.labels(model).observe(sum(report.rows.values()))
        for kind, rows in report.rows.items():
            metrics.rows.labels(model, kind).inc(rows)
        for count in report.candidates:
            metrics.candidates.labels(model).observe(count)
        for part, seconds in report.seconds.items():
            metrics.seconds.labels(model, part).inc(seconds)
        metrics.preemptions.labels(model).inc(self.preemptions - self._preemptions)
        self._preemptions = self.preemptions


def _generation_config(folder: Path) -> Any:
    try:
        return GenerationConfig.from_pretrained(folder)
    except OSError:
        return None
