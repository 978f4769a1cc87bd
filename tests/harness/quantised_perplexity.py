"""`python -m tests.harness.quantised_perplexity SMOLLM2 FILE [TEXTS]`: what whole numbers cost a model.

Perplexity with matrices of 4 and 8 bits on texts by people, and how far the next tokens' distributions are
from bfloat16's (total variation). What is known of a text is a line of FILE.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from ttmark.evaluation.run_folder import append_lines, read_lines
from ttmark.evaluation.unmarked_texts import shipped_sets
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.ragged_batch import Append
from ttmark.gen_service.engine.settings import EngineSettings

_TOKENS = 192
_SEED = 54
_KINDS: tuple[Literal["none", "auto", "int8"], ...] = ("none", "auto", "int8")
"""Numbers of SmolLM2's matrices are of 4 bits already: auto is int4."""


def _measure(folder: str, texts: Sequence[str], file: Path) -> None:
    """A line for each text that the file lacks: its places, and for each kind surprise and distance."""
    runners = []
    for kind in _KINDS:
        settings = EngineSettings(device="cpu", dtype="bfloat16", quantization=kind, reproducible=True)
        loaded = load_model(folder, settings)
        runners.append(loaded.acceleration.runner(loaded.model, KvCache(_TOKENS), reproducible=True))
    for text in texts[len(read_lines(file)) :]:
        tokens = loaded.tokenizer.encode(text)[:_TOKENS]
        told = torch.tensor(tokens[1:])[:, None]
        piece = Append(0, 0, tokens[:-1], is_chunk=True, wants_logits=True, every_row=True)
        chances = [torch.log_softmax(runner.forward([piece])[0].float(), dim=1) for runner in runners]
        surprise = [-float(each.gather(1, told).sum()) for each in chances]
        apart = [float((each.exp() - chances[0].exp()).abs().sum()) / 2 for each in chances]
        append_lines(file, [[len(told), surprise, apart]])


def main() -> None:
    folder, file, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 100
    people = [each.texts for each in shipped_sets(count, _SEED) if each.name.startswith("people")]
    _measure(folder, [text for passages in zip(*people, strict=True) for text in passages][:count], file)
    known = read_lines(file)[:count]
    lengths, surprise, apart = (np.array(column, dtype=np.float64) for column in zip(*known, strict=True))
    places = lengths.sum()
    means, away = surprise.sum(0) / places, apart.sum(0) / places
    changes = means - means[0]
    # What each text adds to a ratio of sums (delta method).
    beyond = surprise - surprise[:, :1] - lengths[:, None] * changes
    errors = 1.96 * np.sqrt(np.square(beyond).sum(0)) / places
    for place, kind in enumerate(_KINDS):
        print(
            f"{kind}: perplexity {np.exp(means[place]):.3f} "
            f"({100 * np.expm1(changes[place]):+.2f} % +- {100 * errors[place]:.2f}), "
            f"total variation {away[place]:.4f}, {places:.0f} tokens of {len(known)} texts"
        )


if __name__ == "__main__":
    main()
