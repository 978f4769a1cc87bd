"""100 texts of vLLM's own watermarkers, judged by its own detectors and by ours."""

from typing import Any

import numpy as np
import pytest
import torch

from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

VOCABULARY, TOKENS, TEXTS = 400, 50, 50
KEY = 0xC0FFEE0DDF00D123


def chosen(logits: torch.Tensor) -> torch.Tensor:
    """Stands for vLLM's random sampler, which needs its runner."""
    return torch.multinomial(logits.softmax(-1), 1).squeeze(-1)


def written(marker: Any, width: int) -> list[list[int]]:
    """Completions of logits that repeat themselves; a repeated context is sampled without the mark."""
    torch.manual_seed(width)
    texts: list[list[int]] = [[] for _ in range(TEXTS)]
    seen: list[set[tuple[int, ...]]] = [set() for _ in range(TEXTS)]
    table = 2 * torch.randn(VOCABULARY, VOCABULARY)
    for _ in range(TOKENS):
        contexts = [tuple(([-1] * width + text)[-width:]) for text in texts]
        logits = torch.stack([table[context[-1]] for context in contexts])
        logits = logits.masked_fill(logits < logits.topk(30).values[:, -1:], -float("inf"))
        skip = torch.tensor([context in before for context, before in zip(contexts, seen, strict=True)])
        tokens = marker.sample(logits, torch.tensor(contexts), chosen, skip).token_ids
        for text, context, before, token in zip(texts, contexts, seen, tokens.tolist(), strict=True):
            before.add(context)
            text.append(token)
    return texts


@pytest.mark.parametrize("width", [1, 4])
def test_scores_and_p_values_are_those_of_the_original_detector(width: int) -> None:
    from vllm.v1.watermarking import GumbelWatermarkDetector, GumbelWatermarker

    scheme, original = FOREIGN_SCHEMES["vllm-gumbel"], GumbelWatermarkDetector(KEY, width)
    mark = scheme.mark(*scheme.split({"key": KEY, "context_width": width}))
    found = []
    for text in written(GumbelWatermarker(KEY, width), width):
        said, one = original.detect(text), mark.detect(text)
        assert one.scored_tokens == said.num_scored_tokens
        assert one.score == pytest.approx(said.score, rel=1e-12)
        assert one.log10_p == pytest.approx(np.log10(said.p_value), rel=1e-5, abs=1e-6)
        found.append(one.log10_p)
    assert np.median(found) < -5


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_scores_under_two_keys_are_those_of_the_original_detector(alpha: float) -> None:
    from vllm.v1.watermarking import DualKeyGumbelWatermarkDetector, DualKeyGumbelWatermarker

    scheme = FOREIGN_SCHEMES["vllm-dual-gumbel"]
    original = DualKeyGumbelWatermarkDetector(KEY, alpha=alpha)
    mark = scheme.mark(*scheme.split({"key": KEY, "alpha": alpha}))
    found = []
    for text in written(DualKeyGumbelWatermarker(KEY, alpha=alpha), 4):
        said, one = original.detect(text), mark.detect(text)
        assert one.scored_tokens == said.num_scored_tokens
        assert one.score == pytest.approx(said.score, rel=1e-12)
        # But for 0.5 the original approximates the sum of two gamma variables by one.
        assert one.log10_p == pytest.approx(
            np.log10(said.p_value), rel=1e-5 if alpha == 0.5 else 0.1, abs=1e-6
        )
        found.append(one.log10_p)
    assert np.median(found) < -5
