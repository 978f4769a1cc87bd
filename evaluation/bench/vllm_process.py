"""vLLM beside us: a process that stays between measurements, or one that ends after its only one."""

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

import torch

from ttmark.evaluation.bench.vllm_peer import ANSWER
from ttmark.evaluation.bench.workload import VLLM, Measurement, Rates, Workload
from ttmark.shared.tokenization import TextTokenizer

_VERSION = "0.32.0"
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # one process, whose processor time is all there is
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
}
CONTEXT = 2048
MEMORY_SHARE = 0.3
"""Of the machine's memory that vLLM asks for at its start, beside another engine."""


class VllmPeer:
    """vLLM on a model, started once for all its measurements; `close` ends it.

    Args:
        python: an interpreter that has `vllm-cpu`.
        threads: None: torch's number here.
        patience_seconds: after which an answer, the first with the start, is given up, and the process ended.
        arguments: further ones of vLLM, in its own names.
        name: of the system, in measurements.
    """

    def __init__(
        self,
        python: Path,
        model: str,
        dtype: str,
        threads: int | None,
        patience_seconds: float,
        *,
        sequences: int,
        arguments: Mapping[str, Any] | None = None,
        name: str = VLLM,
    ) -> None:
        self.name = name
        self._tokenizer = TextTokenizer.load(model)
        self._patience = patience_seconds
        self._scratch = tempfile.TemporaryDirectory()
        folder = Path(self._scratch.name)
        _make_importable(folder)
        threading = {
            "OMP_NUM_THREADS": str(threads or torch.get_num_threads()),
            "PYTHONPATH": self._scratch.name,
        }
        self._errors = (folder / "errors").open("w+")
        assignments = [f"{name}={value}" for name, value in (_ENVIRONMENT | threading).items()]
        self._process = subprocess.Popen(
            ["/usr/bin/env", *assignments, python, "-P", Path(__file__).with_name("vllm_peer.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        chosen = {
            "model": model,
            "dtype": dtype,
            "max_model_len": CONTEXT,
            "max_num_seqs": max(sequences, 2),
            "gpu_memory_utilization": MEMORY_SHARE,
        }
        self._write(chosen | dict(arguments or {}))

    def measure(
        self, workload: Workload, filters: Mapping[str, float] | None = None, name: str | None = None
    ) -> Measurement:
        """Its throughput, or the last error that it names, else its last line.

        Args:
            filters: in place of the workload's.
            name: of the system.
        """
        system = name or self.name
        chosen = dict(workload.filters if filters is None else filters)
        if "top_k" in chosen:
            chosen["top_k"] = int(chosen["top_k"])
        job = {"prompts": workload.prompts(self._tokenizer), "tokens": workload.tokens, "filters": chosen}
        self._write(job)
        made = self._answer()
        if made is None:
            return Measurement(system, workload, error=self._complaint())
        rates = Rates(made["tokens"] / made["seconds"], made["tokens"] / made["cpu_seconds"])
        return Measurement(system, workload, rates)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with suppress(BrokenPipeError):  # what it has not read any more
                    stream.close()
        self._scratch.cleanup()

    def _write(self, line: dict[str, Any]) -> None:
        if self._process.stdin is None:
            raise AssertionError("its standard input is a pipe")
        with suppress(BrokenPipeError):  # it has ended: there will be no answer
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()

    def _answer(self) -> dict[str, float] | None:
        timer = Timer(self._patience, self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout or ():
                if line.startswith(ANSWER):
                    answer: dict[str, float] = json.loads(line.removeprefix(ANSWER))
                    return answer
        finally:
            timer.cancel()
        return None

    def _complaint(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines()]
        errors = [line for line in lines if re.search(r"[Ee]rror[:,] ", line)]
        return (errors or lines or [f"no answer in {self._patience:.0f} s"])[-1]


def vllm(
    python: Path, model: str, dtype: str, threads: int | None, workload: Workload, patience_seconds: float
) -> Measurement:
    """vLLM in the interpreter `python`, without a watermark, once."""
    peer = VllmPeer(python, model, dtype, threads, patience_seconds, sequences=workload.sequences)
    try:
        return peer.measure(workload)
    finally:
        peer.close()


def _make_importable(folder: Path) -> None:
    """What the package `vllm-cpu` needs on the path, in its own processes too.

    Metadata under the name `vllm`, and nothing under the names of torchvision and its like, which break it.
    """
    metadata = folder / f"vllm-{_VERSION}+cpu.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {_VERSION}+cpu\n")
    hidden = dict.fromkeys(("torchvision", "torchaudio", "torchcodec"))
    (folder / "sitecustomize.py").write_text(f"import sys\n\nsys.modules.update({hidden})\n")
