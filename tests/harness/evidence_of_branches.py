"""`python -m tests.harness.evidence_of_branches SMOLLM2 FOLDER [COUNT]`: what fewer candidates cost the mark.

Of answers to 40 prompts, with matrices of 4 bits and of bfloat16 and 2 to 16 candidates probed together, the
mean of -log10 p and the share that is found, also after one word in ten was edited. FOLDER keeps the answers.
"""

import asyncio
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from tests.harness.marked_answers import SAMPLED, WATERMARK, chats, read_answers, write
from tests.harness.typical_lengths import is_found
from ttmark.evaluation.intervals import clopper_pearson, mean
from ttmark.evaluation.text_edits import Material, mix
from ttmark.evaluation.unmarked_texts import human_documents
from ttmark.gen_service.decoding.request import SamplingParams
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest

_PROMPTS, _AT_ONCE, _RATE, _EDITED = 40, 10, 1e-5, 0.1
_SAMPLING = SamplingParams(200, ignore_eos=True, **SAMPLED)
_BRANCHES = (8, 16, 4, 2)
_KINDS: tuple[Literal["auto", "none"], ...] = ("auto", "none")


def _generate(folder: str, kind: Literal["auto", "none"], branches: int, file: Path, count: int) -> None:
    settings = EngineSettings(
        device="cpu",
        dtype="bfloat16",
        quantization=kind,
        threads=1,
        max_sequences=_AT_ONCE,
        max_branches=branches,
        reproducible=False,
    )
    engine = Engine.load(folder, settings)
    engine.start()
    try:
        sampling = replace(_SAMPLING, max_branches=branches)
        for some in range(_AT_ONCE, count + _AT_ONCE, _AT_ONCE):
            asyncio.run(write(engine, file, chats()[:_PROMPTS], min(some, count), sampling, opening_bits=0.0))
    finally:
        engine.stop(0.0)


def _print_row(name: str, file: Path, count: int, tokenizer: TextTokenizer) -> None:
    answers = [one for one in read_answers(file) if one.index < count]
    material, decades, found = Material.of(human_documents()), [], np.zeros(2, dtype=np.int64)
    for one in answers:
        test = LikelihoodTest(WATERMARK, one.ids, rate=_RATE, sharp="always", secret=b"evaluation")
        decades.append(-test.under([one.prf_key]).log10_p)
        text = tokenizer.decode(one.ids)
        texts = text, mix(text, _EDITED, material, np.random.default_rng(one.index))
        found += [is_found(one.prf_key, np.array(tokenizer.encode(each)), _RATE) for each in texts]
    tokens = np.mean([len(one.ids) for one in answers])
    written, edited = (clopper_pearson(int(hits), len(answers)).percent() for hits in found)
    print(
        f"{name}: {len(answers)} answers of {tokens:.0f} tokens, {mean(np.array(decades))} decades; "
        f"found {written}, edited {edited}",
        flush=True,
    )


def main() -> None:
    folder, results, *counts = sys.argv[1:]
    count = int(counts[0]) if counts else _PROMPTS
    torch.set_num_threads(1)
    tokenizer = TextTokenizer.load(Path(folder))
    for kind, branches in product(_KINDS, _BRANCHES):
        file = Path(results) / f"{kind}-{branches}.jsonl"
        if len(read_answers(file)) < count:
            _generate(folder, kind, branches, file, count)
        _print_row(f"{kind}, {branches} candidates", file, count, tokenizer)


if __name__ == "__main__":
    main()
