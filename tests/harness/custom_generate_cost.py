"""`python -m tests.harness.custom_generate_cost FOLDER [ROUNDS]`: what tandem decoding in transformers costs.

FOLDER is SmolLM2's. Prints the processor time of 64 tokens with pairs over that of transformers' own
`generate`, with the sampling of the model's `generation_config.json`, at 1 and 8 sequences: the median over
rounds in which one follows the other.
"""

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import ttmark

TOKENS = 64
QUESTION = "What should I think of when I choose a place to live?"


def seconds(work: Callable[[], Any]) -> float:
    """Of the process's time."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main(folder: str, rounds: int = 5) -> None:
    """Prints a line for each number of sequences."""
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    key = ttmark.Key.new()
    for sequences in (1, 8):
        prompt = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
        inputs = tokenizer([prompt] * sequences, return_tensors="pt")
        options = {"do_sample": True, "max_new_tokens": TOKENS, "eos_token_id": None}

        def plain(inputs: Any = inputs, options: Any = options) -> None:
            model.generate(**inputs, **options)

        def pairs(inputs: Any = inputs, options: Any = options) -> None:
            model.generate(**inputs, **options, custom_generate=ttmark.tandem(key))

        pairs()  # what is made once
        times = [(seconds(plain), seconds(pairs)) for _ in range(rounds)]
        ratios = sorted(marked / unmarked for unmarked, marked in times)
        print(
            f"{sequences} sequences: {median(ratios):.2f} times, {ratios[0]:.2f} to {ratios[-1]:.2f};"
            f" plain {TOKENS * sequences / median(one for one, _ in times):.1f} tokens a second",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
