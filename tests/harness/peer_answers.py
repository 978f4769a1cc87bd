"""`python -m tests.harness.peer_answers SYSTEM FOLDER FILE KEY [TOKENS]`: answers with another system's mark.

SYSTEM is `peer-synthid` (transformers), `peer-kgw` or, where vLLM is installed, `peer-vllm-gumbel`; FOLDER is
SmolLM2's. Writes an answer to each English chat prompt into FILE as JSON lines, all under one key, and into
KEY what `ttmark keys import` takes. Sampling is that of `tests.harness.marked_answers`; the mark comes after
it, where transformers has its own. Answers that FILE holds are kept, so an interrupted run goes on.
"""

import hashlib
import sys
from pathlib import Path

import orjson
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from tests.harness.marked_answers import prompts_for
from ttmark.evaluation.peers.systems import LAYERS, NGRAM, SYNTHID, SYSTEMS, Row, words
from ttmark.gen_service.smollm2 import SAMPLING

AT_ONCE = 8


def key_of(system: str) -> bytes:
    """The one key of all answers."""
    return hashlib.sha256(system.encode()).digest()


def imported(system: str) -> dict[str, object]:
    """That key as `ttmark keys import` reads it."""
    if system == SYNTHID:
        return {"keys": words(key_of(system), LAYERS), "ngram_len": NGRAM}
    word = words(key_of(system), 1)[0]
    return {"hashing_key": word} if system == "peer-kgw" else {"key": word}


@torch.inference_mode()
def write(system: str, folder: str, file: Path, tokens: int) -> None:
    """The answers that the file lacks, some at a time."""
    tokenizer, model = (kind.from_pretrained(folder) for kind in (AutoTokenizer, AutoModelForCausalLM))
    tokenizer.padding_side, vocabulary = "left", model.eval().config.vocab_size
    neutral = GenerationConfig(
        max_new_tokens=tokens,
        do_sample=True,
        top_k=0,
        top_p=1.0,
        temperature=1.0,
        repetition_penalty=1.0,
        eos_token_id=model.generation_config.eos_token_id,
        pad_token_id=tokenizer.eos_token_id,
    )
    prompts = prompts_for("")
    known = len(file.read_bytes().splitlines()) if file.exists() else 0
    for start in range(known, len(prompts), AT_ONCE):
        fed = tokenizer(prompts[start : start + AT_ONCE], return_tensors="pt", padding=True)
        rows, length = fed["input_ids"].shape
        marks = [SYSTEMS[system].row(key_of(system), vocabulary, length) for _ in range(rows)]

        def marked(ids: torch.Tensor, scores: torch.Tensor, marks: list[Row] = marks) -> torch.Tensor:
            return torch.cat([mark(ids[[at]], scores[[at]]) for at, mark in enumerate(marks)])

        torch.manual_seed(start)
        sampling = [
            RepetitionPenaltyLogitsProcessor(SAMPLING["repetition_penalty"]),
            TemperatureLogitsWarper(SAMPLING["temperature"]),
            TopKLogitsWarper(SAMPLING["top_k"]),
            TopPLogitsWarper(SAMPLING["top_p"]),
        ]
        made = model.generate(**fed, generation_config=neutral, logits_processor=[*sampling, marked])
        with file.open("ab") as lines:
            for at, ids in enumerate(made[:, length:].tolist()):
                text = tokenizer.decode(ids, skip_special_tokens=True)
                lines.write(orjson.dumps({"prompt": start + at, "text": text}) + b"\n")


def main() -> None:
    """Writes what is asked for."""
    system, folder, file, key, *tokens = sys.argv[1:]
    torch.set_num_threads(1)
    Path(key).write_bytes(orjson.dumps(imported(system)))
    write(system, folder, Path(file), int(tokens[0]) if tokens else 300)


if __name__ == "__main__":
    main()
