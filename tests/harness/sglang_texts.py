"""Texts of SGLang's own selector with what its own detector says: `tests/golden/sglang-gumbel.json`.

`python -m tests.harness.sglang_texts FOLDER`, where FOLDER holds SGLang's `srt/sampling/watermarking` as a
folder `watermarking` without its `__init__.py`; it needs `msgspec` and nothing else of SGLang. Writes the
first of 100 texts, after all of them had our score.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch

from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

VOCABULARY, TOKENS, TEXTS, KEPT = 500, 60, 100, 8
CONFIGURATIONS: tuple[dict[str, Any], ...] = (
    {"key": "0x123456789abcdef0"},
    {"key": "f00d", "context_window": 2},
    {"key": "fedcba9876543210", "key_b": "1", "mixing_probability": 0.3},
    {"key": "7", "key_b": "ffffffffffffffff"},
)
MADE_WITH = "sglang 0.5.23"


def written(core: Any, configuration: dict[str, Any], seed: int) -> list[int]:
    """A completion; a repeated context is sampled without the mark."""
    window = configuration.get("context_window", 4)
    sampling, tokens, seen = torch.Generator().manual_seed(seed), [1, 2, 3, 4], set()
    table = 2 * torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(0))

    def key(name: str) -> torch.Tensor:
        return torch.tensor([core.parse_watermark_key(configuration[name])])

    second: tuple[torch.Tensor, ...] = ()
    if "key_b" in configuration:
        threshold = int(configuration.get("mixing_probability", 0.5) * 2**32)
        second = (key("key_b"), torch.tensor([threshold]))
    for _ in range(TOKENS):
        logits = table[tokens[-1]][None]
        logits = logits.masked_fill(logits < logits.topk(20).values[:, -1:], -float("inf"))
        context = tuple(tokens[-window:])
        if context in seen:
            token = torch.multinomial(logits.softmax(-1), 1, generator=sampling)
        else:
            hashed = torch.tensor([core.hash_context(context)])
            token = core.select_watermark_tokens_torch(logits.softmax(-1), hashed, key("key"), *second)
        seen.add(context)
        tokens.append(int(token))
    return tokens[4:]


def main() -> None:
    """Compares and writes."""
    sys.path.insert(0, sys.argv[1])
    core: Any = importlib.import_module("watermarking.core")
    detector: Any = importlib.import_module("watermarking.detector")
    scheme, texts = FOREIGN_SCHEMES["sglang-gumbel"], []
    for number in range(TEXTS):
        configuration = CONFIGURATIONS[number % len(CONFIGURATIONS)]
        tokens = written(core, configuration, number)
        said = detector.detect(tokens, **configuration).combined
        found = scheme.mark(*scheme.split(configuration)).detect(tokens)
        assert found.scored_tokens == said.num_contexts
        assert abs(found.score - said.score) < 1e-9 * said.score
        texts.append({**configuration, "token_ids": tokens, "score": said.score, "log_p": said.log_p_value})
    lines = ",\n".join(json.dumps(text) for text in texts[:KEPT])
    target = Path(__file__).parents[1] / "golden" / "sglang-gumbel.json"
    target.write_text(f'{{"made_with": "{MADE_WITH}", "texts": [\n{lines}\n]}}\n')
    print(f"{TEXTS} texts have the score of {MADE_WITH}")


if __name__ == "__main__":
    main()
