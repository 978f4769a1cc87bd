"""How often a text is read as other tokens than it was generated as, and what detection makes of it.

    python -m evaluation.retokenisation [--texts 200] [--tokens 200]

Tokenizers of three kinds are trained on one half of the shipped human texts, a trigram model on their tokens
writes watermarked texts, and each text is decoded, encoded again and examined.
"""

import argparse
import json
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.human import read_human_texts
from evaluation.trained_tokenizers import KINDS
from evaluation.trigram_model import TrigramModel
from gen_service.demo_model import HUMAN_TEXTS_PATH
from shared.tokenization import TextTokenizer
from shared.watermark import (
    ContextTracker,
    Watermark,
    detect_aligned,
    detect_direct,
    detect_localized,
    key_lanes,
)

KEY = bytes(range(16))
LOG10_FPR = -5.0
CANDIDATES = 16  # of each of the two tokens


def write_text(
    model: TrigramModel,
    watermark: Watermark,
    prompt: Sequence[int],
    tokens: int,
    generator: np.random.Generator,
) -> list[int]:
    """A completion of `prompt`, block by block from the watermarked distribution."""
    written: list[int] = []
    tracker = ContextTracker(watermark.block_size, watermark.context_width)
    while len(written) < tokens:
        blocks, probs = block_distribution(model, [*prompt, *written])
        context = tracker.next_context(written)
        if context is not None:
            offsets = np.array([0, probs.size])
            contexts = np.array([context], dtype=np.int64)
            probs = watermark.reweight(key_lanes(KEY)[None, :], contexts, blocks, probs, offsets)
        written += blocks[generator.choice(probs.size, p=probs)].tolist()
    return written


def block_distribution(
    model: TrigramModel, before: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of tokens [N, 2] and their probabilities [N]."""
    blocks, probs = [], []
    first, first_probs = model.likeliest(before, CANDIDATES)
    for token, probability in zip(first.tolist(), first_probs.tolist(), strict=True):
        second, second_probs = model.likeliest([*before, token], CANDIDATES)
        blocks.append(np.column_stack([np.full_like(second, token), second]))
        probs.append(probability * second_probs)
    return np.concatenate(blocks), np.concatenate(probs)


def log10_p_values(watermark: Watermark, ids: Sequence[int]) -> dict[str, float]:
    """log10 of the p-value in each mode."""
    return {
        "direct, phase 0": detect_direct(watermark, KEY, ids).log10_p,
        "direct, any phase": detect_direct(watermark, KEY, ids, phase="any").log10_p,
        "aligned": detect_aligned(watermark, KEY, ids).log10_p,
        "localized": detect_localized(watermark, KEY, ids, log10_e_limit=LOG10_FPR).log10_p,
    }


def examine(tokenizer: TextTokenizer, texts: list[list[int]], watermark: Watermark) -> dict[str, Any]:
    """Counts over the texts, read again from their characters."""
    again = [tokenizer.encode(tokenizer.decode(ids)) for ids in texts]
    generated = [log10_p_values(watermark, ids) for ids in texts]
    read = [log10_p_values(watermark, ids) for ids in again]
    changed = [i for i, ids in enumerate(texts) if ids != again[i]]
    return {
        "texts": len(texts),
        "read as other tokens": len(changed),
        "odd change of length": sum(len(a) % 2 != len(b) % 2 for a, b in zip(texts, again, strict=True)),
        "modes": {
            mode: {
                "found from tokens": sum(found[mode] <= LOG10_FPR for found in generated),
                "found from text": sum(found[mode] <= LOG10_FPR for found in read),
                "found of those read as other tokens": sum(read[i][mode] <= LOG10_FPR for i in changed),
                "median log10 p from text": round(median(found[mode] for found in read), 1),
            }
            for mode in read[0]
        },
    }


def measure(kind: str, texts: int, tokens: int, vocab_size: int) -> dict[str, Any]:
    """The report of one kind of tokenizer."""
    human = read_human_texts(HUMAN_TEXTS_PATH)
    tokenizer = KINDS[kind](human[::2], vocab_size)
    encoded = [tokenizer.encode(text) for text in human]
    model, watermark = TrigramModel(encoded), Watermark("synthid", 2)
    generator = np.random.default_rng(0)
    written = [
        write_text(model, watermark, encoded[i % len(encoded)][:8], tokens, generator) for i in range(texts)
    ]
    return examine(tokenizer, written, watermark)


def main() -> None:
    """Prints one JSON object: kind -> report."""
    parser = argparse.ArgumentParser(description="Texts that are read as other tokens, by kind of tokenizer.")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--vocab-size", type=int, default=4000)
    options = parser.parse_args()
    reports = {kind: measure(kind, options.texts, options.tokens, options.vocab_size) for kind in KINDS}
    print(json.dumps(reports, indent=2))


if __name__ == "__main__":
    main()
