"""`python -m tests.harness.restricted FOLDER [SHARE] [SEED] [KIND]`: evidence under schemas.

FOLDER is SmolLM2's; SHARE replaces the least share of the model's own choice, 0 for none; SEED chooses key
and draws; KIND is `ordinary`, `forgeries`, `long` or `free`, else all. One answer of each request.
"""

import asyncio
import hashlib
import sys
from typing import Any

import torch

from tests.harness.restricted.forgeries import Forgery, forgeries, free_words, long_forgeries
from tests.harness.restricted.ordinary import ORDINARY
from ttmark.gen_service.decoding import block
from ttmark.gen_service.decoding.block import LEAST_SHARE
from ttmark.gen_service.decoding.json_grammar import JsonGrammars
from ttmark.gen_service.engine import Engine, EngineSettings, GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.smollm2 import SAMPLING
from ttmark.shared.watermark import Watermark, detect_direct

WATERMARK = Watermark("gumbel", 2, 2)
TOKENS, BRANCHES, MOST = 320, 8, 30
CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
OURS = {name: SAMPLING[name] for name in ("temperature", "top_p", "top_k", "repetition_penalty")}
Asked = tuple[str, str, dict[str, Any], dict[str, Any]]


def asked() -> dict[str, list[Asked]]:
    """Name, prompt, schema and sampling of each request."""
    hint = "{} Answer in JSON with these fields: {}."
    return {
        "ordinary": [
            (
                prompt[:30],
                hint.format(prompt, ", ".join(f'"{name}"' for name in schema["properties"])),
                schema,
                OURS,
            )
            for prompt, schema in ORDINARY
        ],
        "forgeries": [_asked(each) for each in forgeries()],
        "long": [_asked(each) for each in long_forgeries()],
        "free": [_asked(each) for each in free_words()],
    }


def _asked(forgery: Forgery) -> Asked:
    return forgery.name, forgery.prompt, forgery.schema, forgery.sampling


async def measure(engine: Engine, name: str, requests: list[Asked], seed: int) -> None:
    """Prints log10 p of each answer, as ids and as text, and their sums."""
    grammars = JsonGrammars(engine.tokenizer, engine.eos_token_ids)
    key = hashlib.sha256(f"{name} {seed}".encode()).digest()[:16]
    marking = Marking("key", 1, "profile", WATERMARK, key)

    async def one(number: int, request: Asked) -> tuple[float, float]:
        label, prompt, schema, sampling = request
        ids = engine.tokenizer.backend.encode(CHAT.format(prompt), add_special_tokens=False).ids
        params = SamplingParams(TOKENS, seed=1_000 * seed + number, max_branches=BRANCHES, **sampling)
        grammar = grammars.compile(schema)
        generated = engine.generate(
            GenerationRequest(f"{name} {number}", tuple(ids), params, marking, grammar=grammar)
        )
        deltas = [delta async for delta in generated]
        tokens = [token for delta in deltas for token in delta.token_ids]
        read = engine.tokenizer.encode("".join(delta.text for delta in deltas))
        of_ids = detect_direct(WATERMARK, key, tokens).log10_p
        of_text = detect_direct(WATERMARK, key, read, phase="any").log10_p
        marked = sum(delta.watermarked for delta in deltas)
        same = read == [token for token in tokens if token not in engine.eos_token_ids]
        figures = f"{len(tokens):4d} tokens {marked:3d} marked {of_ids:7.2f} {of_text:7.2f}"
        print(f"{label:32s} {figures} reads back {same}")
        return of_ids, of_text

    found = await asyncio.gather(*(one(number, request) for number, request in enumerate(requests)))
    ids, texts = zip(*found, strict=True)
    for way, values in (("ids", ids), ("text", texts)):
        hits = sum(value <= -5.0 for value in values)
        print(
            f"== {name}, {way}: sum {sum(values):.1f}, best {min(values):.1f}, found: {hits} of {len(values)}"
        )


def main() -> None:
    folder, *more = sys.argv[1:]
    share, seed, kind = [*more, *(str(LEAST_SHARE), "0", "")[len(more) :]]
    setattr(block, "LEAST_SHARE", float(share))  # noqa: B010 - the rule has no setting
    torch.set_num_threads(1)
    settings = EngineSettings(
        dtype="float32",
        threads=1,
        max_sequences=MOST,
        max_waiting=MOST,
        adaptive_branches=False,
        prefix_cache=False,
    )
    engine = Engine.load(folder, settings)
    engine.start()
    try:
        for name, requests in asked().items():
            if kind in ("", name):
                asyncio.run(measure(engine, name, requests, int(seed)))
    finally:
        engine.stop(0.0)


if __name__ == "__main__":
    main()
