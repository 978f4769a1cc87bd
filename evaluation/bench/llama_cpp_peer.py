"""llama.cpp under the same workload, without a mark: what writes one chat on a CPU elsewhere.

Run as a script this file is the process that it runs in: a workload in, figures out. That needs `xllamacpp`
(the extra `bench`) and nothing of the project, so that its memory is its own.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttmark.evaluation.bench.workload import Measurement, Workload

_CONTEXT = 1024  # tokens of a sequence


class LlamaCpp:
    """A GGUF file as llama.cpp serves it."""

    def __init__(self, gguf: str, threads: int) -> None:
        self._gguf, self._threads = gguf, threads

    def measure(self, workload: "Workload", prompts: Sequence[Sequence[int]]) -> "Measurement":
        """All prompts at once, with the peak of its memory.

        Raises:
            RuntimeError: xllamacpp is not installed, or cannot read the file.
        """
        from ttmark.evaluation.bench.workload import Measurement, Rates

        asked = {
            "max_tokens": workload.tokens,
            "temperature": workload.filters.temperature,
            "top_k": workload.filters.top_k or 0,
            "top_p": workload.filters.top_p,
            "ignore_eos": True,
        }
        told = {"gguf": self._gguf, "threads": self._threads, "prompts": prompts, "asked": asked}
        command = [sys.executable, __file__]
        done = subprocess.run(command, input=json.dumps(told), text=True, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"llama.cpp: {done.stderr.strip().splitlines()[-1]}")
        second, cpu_second, peak = json.loads(done.stdout.splitlines()[-1])
        return Measurement("llama.cpp, no watermark", workload, Rates(second, cpu_second), {"peak_mib": peak})


def _main() -> None:
    import xllamacpp

    told = json.load(sys.stdin)
    settings, prompts = xllamacpp.CommonParams(), told["prompts"]
    settings.model.path, settings.n_parallel = told["gguf"], len(prompts)
    settings.n_ctx = _CONTEXT * len(prompts)
    settings.warmup, settings.cache_prompt = True, False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = told["threads"]
    server = xllamacpp.Server(settings)

    def write(prompt: list[int]) -> int:
        answer = server.handle_completions({**told["asked"], "prompt": prompt})
        answer = answer if isinstance(answer, dict) else json.loads(answer)
        return int(answer["usage"]["completion_tokens"])

    write(prompts[0][:4])
    cpu, wall = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(len(prompts)) as pool:
        made = sum(pool.map(write, prompts))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    # What `getrusage` says counts the process that this one was started from.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 1024
    print(json.dumps([made / wall, made / cpu, peak]))


if __name__ == "__main__":
    _main()
