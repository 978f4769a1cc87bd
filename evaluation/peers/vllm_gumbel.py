"""vLLM's Gumbel watermarks inside transformers' `generate`: its own classes, where vLLM is installed."""

from typing import Any

import torch


class KeptPrf:
    """A PRF of vLLM that is asked for tokens by their place among those that the filters kept."""

    def __init__(self, prf: Any) -> None:
        self._prf = prf
        self.kept = torch.empty(0, dtype=torch.int64)

    def uniform(self, contexts: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
        """Uniform numbers [rows, tokens]."""
        drawn: torch.Tensor = self._prf.uniform(contexts, self.kept[token_ids])
        return drawn


class VllmRow:
    """One text: its next token is the watermarker's, and a repeated context is sampled without the mark.

    Args:
        watermarker: of vLLM, for this text alone.
        prompt_tokens: at the start of the token ids, padding included.
    """

    def __init__(self, watermarker: Any, prompt_tokens: int) -> None:
        self._watermarker = watermarker
        self._prompt_tokens = prompt_tokens
        self._seen: set[tuple[int, ...]] = set()
        parts = (
            [watermarker.draft_watermarker, watermarker.target_watermarker]
            if hasattr(watermarker, "draft_watermarker")
            else [watermarker]
        )
        for part in parts:
            part.prf = KeptPrf(part.prf)
        self._prfs = [part.prf for part in parts]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [1, vocab] with one token left, from token ids [1, tokens] and scores [1, vocab]."""
        width = self._watermarker.context_width
        completion = input_ids[0, self._prompt_tokens :].tolist()
        context = tuple(([-1] * width + completion)[-width:])
        kept = scores[0].isfinite().nonzero()[:, 0]  # [kept]
        for prf in self._prfs:
            prf.kept = kept
        skip = torch.tensor([context in self._seen])
        self._seen.add(context)
        sample = self._watermarker.sample(scores[:, kept], torch.tensor([context]), drawn, skip)
        only = torch.full_like(scores, -torch.inf)
        only[0, kept[sample.token_ids]] = 0.0
        return only


def drawn(logits: torch.Tensor) -> torch.Tensor:
    """A token of each row; in the place of vLLM's random sampler, which is a GPU kernel."""
    return torch.multinomial(logits.softmax(-1), 1)[:, 0]


def gumbel_row(key: int, prompt_tokens: int) -> VllmRow:
    """With one key and vLLM's defaults."""
    from vllm.v1.watermarking import GumbelWatermarker

    return VllmRow(GumbelWatermarker(key), prompt_tokens)


def dual_key_row(key: int, prompt_tokens: int) -> VllmRow:
    """With two keys and vLLM's defaults."""
    from vllm.v1.watermarking import DualKeyGumbelWatermarker

    return VllmRow(DualKeyGumbelWatermarker(key), prompt_tokens)
