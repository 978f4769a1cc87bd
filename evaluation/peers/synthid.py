"""SynthID-Text of transformers at the speed of its `generate`: it sees the tokens that the filters kept."""

import torch
from transformers import SynthIDTextWatermarkingConfig, SynthIDTextWatermarkLogitsProcessor


class KeptSynthId(SynthIDTextWatermarkLogitsProcessor):  # type: ignore[misc]
    """The processor of one text after top-k and top-p.

    The original computes 30 bits for each token of the vocabulary. Those of tokens without probability have
    no part in the result, so it is shown the others alone, under their own ids.
    """

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """New scores [1, vocab] from token ids [1, tokens] and scores [1, vocab]."""
        self._kept = scores[0].isfinite().nonzero()[:, 0]  # [kept]
        updated = torch.full_like(scores, -torch.inf)
        updated[:, self._kept] = super().__call__(input_ids, scores[:, self._kept])
        return updated

    def _compute_keys(
        self, n_minus_1_grams: torch.Tensor, indices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys: tuple[torch.Tensor, torch.Tensor] = super()._compute_keys(n_minus_1_grams, self._kept[indices])
        return keys


def kept_synthid(layer_keys: tuple[int, ...], ngram_len: int) -> KeptSynthId:
    """A processor for one text, with the defaults of transformers."""
    config = SynthIDTextWatermarkingConfig(ngram_len=ngram_len, keys=list(layer_keys))
    return KeptSynthId(
        ngram_len=ngram_len,
        keys=config.keys,
        sampling_table_size=config.sampling_table_size,
        sampling_table_seed=config.sampling_table_seed,
        context_history_size=config.context_history_size,
        device=torch.device("cpu"),
    )
