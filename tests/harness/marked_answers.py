"""`python -m tests.harness.marked_answers FOLDER FILE [COUNT] [PROMPTS] [TOKENS]`: answers of SmolLM2.

Writes COUNT answers to PROMPTS chat prompts into FILE as JSON lines, with the key of the pool, ids and text,
as a key and the service are where nothing is said. Answers that FILE holds are kept.
"""

import asyncio
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ttmark.evaluation.run_folder import append_lines, read_lines
from ttmark.evaluation.text_files import read_field
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.gen_service.smollm2 import SAMPLING
from ttmark.shared.watermark.schemes.watermark import Watermark

POOL = 4
WATERMARK = Watermark("gumbel", 2, 2)
SAMPLED = {name: SAMPLING[name] for name in ("temperature", "top_p", "top_k", "repetition_penalty")}
AT_ONCE, BRANCHES, OPENING_BITS = 48, 8, 8.0
CHAT = "<|im_start|>"
PROMPTS_PATH = Path(__file__).with_name("prompts.jsonl")
"""In SmolLM2's chat template three questions, then a text by people to go on with, and so on."""


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    index: int
    prf_key: bytes
    ids: tuple[int, ...]


def pool() -> list[bytes]:
    return [hashlib.sha256(f"pool {number}".encode()).digest()[:16] for number in range(POOL)]


def read_answers(file: Path) -> list[MarkedAnswer]:
    """Those of the file, in the order of their indices; a line that was cut off is left out."""
    return sorted(_lines(file), key=lambda answer: answer.index)


def _lines(file: Path) -> Iterator[MarkedAnswer]:
    for said in read_lines(file):
        yield MarkedAnswer(said["index"], bytes.fromhex(said["prf_key"]), tuple(said["ids"]))


def chats() -> list[str]:
    return [text for text in read_field(PROMPTS_PATH, "prompt") if text.startswith(CHAT)]


async def write(
    engine: Engine,
    file: Path,
    asked: Sequence[str],
    count: int,
    sampling: SamplingParams,
    opening_bits: float = OPENING_BITS,
) -> None:
    """Answers that the file lacks, each with its number as its seed, when it is done."""
    prompt_ids = [
        tuple(engine.tokenizer.backend.encode(text, add_special_tokens=False).ids) for text in asked
    ]
    known, keys, places = {answer.index for answer in _lines(file)}, pool(), asyncio.Semaphore(AT_ONCE)

    async def one(index: int) -> None:
        key = int.from_bytes(hashlib.sha256(f"key of {index}".encode()).digest()[:4], "big") % POOL
        async with places:
            request = GenerationRequest(
                request_id=str(index),
                prompt_ids=prompt_ids[index % len(asked)],
                sampling=replace(sampling, seed=index),
                marking=Marking("key", 1, "profile", WATERMARK, keys[key], opening_bits),
            )
            deltas = [delta async for delta in engine.generate(request)]
        said = {
            "index": index,
            "prf_key": keys[key].hex(),
            "ids": [token for delta in deltas for token in delta.token_ids],
            "text": "".join(delta.text for delta in deltas),
        }
        append_lines(file, [said])

    await asyncio.gather(*(one(index) for index in range(count) if index not in known))


def main() -> None:
    folder, file, *numbers = sys.argv[1:]
    count, prompts, tokens = map(int, [*numbers, *("2000", "40", "200")[len(numbers) :]])
    torch.set_num_threads(1)
    engine = Engine.load(folder, EngineSettings(threads=1, max_sequences=AT_ONCE, max_branches=BRANCHES))
    engine.start()
    sampling = SamplingParams(tokens, max_branches=BRANCHES, **SAMPLED)
    try:
        asyncio.run(write(engine, Path(file), chats()[:prompts], count, sampling))
    finally:
        engine.stop(0.0)


if __name__ == "__main__":
    main()
