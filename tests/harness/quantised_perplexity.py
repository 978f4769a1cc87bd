"""`python -m tests.harness.quantised_perplexity SMOLLM2 [TEXTS]`: what whole numbers cost a model.

Perplexity of a model in bfloat16 and with matrices of 4 and 8 bits on texts by people, and how far the
distributions of next tokens are from bfloat16's (total variation, mean over all places).
"""

import sys
from typing import Literal

import torch

from ttmark.evaluation.conformance.unmarked_texts import shipped_sets
from ttmark.gen_service.engine import EngineSettings
from ttmark.gen_service.engine.attention import KvCache
from ttmark.gen_service.engine.loading import load_model
from ttmark.gen_service.engine.ragged_batch import Append

_TOKENS = 192
_SEED = 54
_KINDS: tuple[Literal["none", "auto", "int4", "int8"], ...] = ("none", "auto", "int4", "int8")


def main() -> None:
    folder, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    people = [each.texts for each in shipped_sets(count, _SEED) if each.name.startswith("people")]
    texts = [text for passages in zip(*people, strict=True) for text in passages][:count]
    runners = {}
    for kind in _KINDS:
        settings = EngineSettings(device="cpu", dtype="bfloat16", quantization=kind, reproducible=False)
        loaded = load_model(folder, settings)
        runners[kind] = loaded.acceleration.runner(loaded.model, KvCache(_TOKENS), reproducible=False)
        print(kind, loaded.acceleration.weights, flush=True)
    surprise, apart, places = dict.fromkeys(_KINDS, 0.0), dict.fromkeys(_KINDS, 0.0), 0
    for text in texts:
        tokens = loaded.tokenizer.encode(text)[:_TOKENS]
        told = torch.tensor(tokens[1:])[:, None]
        places += len(told)
        first: torch.Tensor | None = None
        for kind, runner in runners.items():
            piece = Append(0, 0, tokens[:-1], is_chunk=True, wants_logits=True, every_row=True)
            chances = torch.log_softmax(torch.cat(runner.forward([piece])).float(), dim=1)[-len(told) :]
            surprise[kind] -= float(chances.gather(1, told).sum())
            first = chances if first is None else first
            apart[kind] += float((chances.exp() - first.exp()).abs().sum()) / 2
    base = surprise["none"] / places
    for kind in _KINDS:
        mean = surprise[kind] / places
        change = 100 * (torch.tensor(mean - base).exp().item() - 1)
        print(
            f"{kind}: perplexity {torch.tensor(mean).exp().item():.3f} ({change:+.2f} %), "
            f"total variation {apart[kind] / places:.4f}, {places} tokens of {len(texts)} texts"
        )


if __name__ == "__main__":
    main()
