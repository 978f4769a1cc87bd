"""`python -m tests.harness.memory`: what memory a chat at home takes, in MiB.

First the pieces of the generation service in one process; then all processes of `ttmark up`, when they are
ready and after some requests; last the peak of transformers that writes 1, 8 and 32 sequences at once.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from ttmark.services.smollm2 import get_smollm2
from ttmark.shared.observability.memory import process_memory, release_free_memory

GEN_PORT, DETECT_PORT = 18_400, 18_401
AT_ONCE, TOKENS = 32, 40
QUESTION = "Write a short story about lighthouse keeper number {}."
CACHED = re.compile(r"^ttmark_engine_kv_cache_(?:used|prefix)_tokens\{.*\} (\S+)", re.M)


TRANSFORMERS = f"""
import resource, sys, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16).eval()
prompts = torch.arange(100, {100 + TOKENS}).repeat(int(sys.argv[2]), 1)
model.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=True, min_new_tokens={TOKENS},
               max_new_tokens={TOKENS})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def pieces(folder: Path, choices: Path) -> Iterator[str]:
    """What has come by then; imports come when they are needed."""
    import torch

    yield "torch"
    import ttmark.services.composition.generation_service  # noqa: F401
    from ttmark.gen_service.api.plan.served_model import ServedModel
    from ttmark.gen_service.decoding.request import GenerationRequest, SamplingParams
    from ttmark.gen_service.engine.loop.engine import Engine
    from ttmark.gen_service.engine.settings import EngineSettings
    from ttmark.gen_service.features.structured.answer_marks import AnsweringModel
    from ttmark.gen_service.features.structured.grammars.json_grammar import ANY_OBJECT

    yield "the service's imports"
    settings = EngineSettings(dtype="auto", threads="auto", reproducible=False, choices=choices)
    engine = Engine.load(str(folder), settings)
    yield f"weights in {engine._runner.model.dtype}, {torch.get_num_threads()} threads, and the tokenizer"
    served = AnsweringModel(ServedModel(engine))
    yield "conversations"
    served.grammars.submit(ANY_OBJECT).result()
    yield "a grammar"
    engine.start()

    async def write(number: int) -> None:
        sampling = SamplingParams(max_tokens=TOKENS, seed=number, ignore_eos=True)
        async for _ in engine.generate(
            GenerationRequest(str(number), (*range(100, 140), number), sampling, None)
        ):
            pass

    async def together(count: int) -> None:
        await asyncio.gather(*map(write, range(count)))

    for count in (1, AT_ONCE):
        asyncio.run(together(count))
        rows = engine.stats.cached_tokens + engine.stats.prefix_tokens
        yield f"{count} sequences; {rows * engine._runner.cache.bytes_per_token >> 20} MiB of it cache"
    engine.stop(0)


def processes(state: Path, requests: int) -> Iterator[tuple[str, psutil.Process]]:
    """When `ttmark up` has shown its demonstration, and after the requests: what is said of a process."""
    ports = ["--gen-port", str(GEN_PORT), "--detect-port", str(DETECT_PORT)]
    command = [
        sys.executable,
        "-m",
        "ttmark.services",
        "up",
        "--model",
        "smollm2",
        "--state",
        str(state),
        *ports,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as up:
        try:
            for line in up.stdout or ():
                if "Ctrl-C" in line:
                    break
            parent = psutil.Process(up.pid)
            together = [parent, *parent.children(recursive=True)]
            yield from (("ready", each) for each in together)
            headers = {"Authorization": f"Bearer {(state / 'token').read_text().strip()}"}
            with httpx.Client(
                base_url=f"http://127.0.0.1:{GEN_PORT}", headers=headers, timeout=None
            ) as client:

                def ask(number: int) -> None:
                    messages = [{"role": "user", "content": QUESTION.format(number)}]
                    body = {"model": "smollm2", "max_tokens": TOKENS, "messages": messages}
                    client.post("/v1/chat/completions", json=body).raise_for_status()

                with ThreadPoolExecutor(AT_ONCE) as pool:
                    list(pool.map(ask, range(requests)))
                cached = sum(map(float, CACHED.findall(client.get("/metrics").text)))
            yield from ((f"{requests} requests, {cached:.0f} tokens cached", each) for each in together)
        finally:
            up.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--state", type=Path, default=Path(".ttmark"))
    parser.add_argument("--pieces", action="store_true", help="of the generation service alone")
    given = parser.parse_args()
    folder = get_smollm2(given.state)
    for piece in pieces(folder, given.state / "choices.json"):
        release_free_memory()
        print(
            json.dumps({"piece": piece} | {name: n >> 20 for name, n in process_memory().items()}), flush=True
        )
    if not given.pieces:
        for moment, process in processes(given.state, given.requests):
            memory = process.memory_full_info()
            command = " ".join(process.cmdline()[1:5])
            row = {"at": moment, "process": command, "resident": memory.rss >> 20, "pss": memory.pss >> 20}
            print(json.dumps(row), flush=True)
        for count in (1, 8, AT_ONCE):
            peer = [sys.executable, "-c", TRANSFORMERS, str(folder), str(count)]
            peak = int(subprocess.run(peer, stdout=subprocess.PIPE, text=True, check=True).stdout)
            print(json.dumps({"peer": "transformers", "sequences": count, "peak": peak}), flush=True)


if __name__ == "__main__":
    main()
