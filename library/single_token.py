"""`ttmark.SingleToken`: a mark of single tokens, as a logits processor."""

import math
import secrets
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LogitsProcessor

from ttmark.gen_service.decoding.filtered_tokens import WINDOW, FilterParams, Support
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.library.generation_requests import OPENING_BITS
from ttmark.library.key import Key
from ttmark.library.tokenizer import text_tokenizer
from ttmark.shared.watermark.prf import ContextTracker, key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark


class SingleToken(LogitsProcessor):  # type: ignore[misc]
    """Marks single tokens (r = 1) in `model.generate(..., logits_processor=[processor])`.

    This is **not** the mark of pairs: a processor sees one token at a time, and pairs need to look at
    several candidates for the first one. `tandem` marks pairs. `detect` its texts with `processor.key`.

    Give temperature, top-k and top-p here: transformers filters after the caller's processors, so those of
    `generate` change nothing with the default scheme, which leaves one token. Each call of `generate`
    begins anew; two calls at the same time need two processors.

    Args:
        key: `processor.key` has the same secret, and blocks of one token.
        tokenizer: of the model, a folder or a model's name.
    """

    def __init__(
        self, key: Key, tokenizer: Any, *, temperature: float = 1.0, top_k: int = 50, top_p: float = 1.0
    ) -> None:
        self.key = key.with_blocks_of(1)
        if not 1 <= top_k <= WINDOW:
            raise ValueError(f"top_k is 1 to {WINDOW}, not {top_k}")
        read = text_tokenizer(tokenizer)
        profile, pool = self.key.marking(read, str(getattr(tokenizer, "name_or_path", tokenizer)))
        self._watermark = profile.watermark()
        self._pool = pool
        self._filters = FilterParams(temperature, top_k, top_p)
        self._prompt = 0
        self._rows: list[_Row] = []
        self._seen = torch.empty((0, 0), dtype=torch.long)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Scores [rows, vocab] after `input_ids` [rows, tokens] -> log P_w, minus infinity where it is 0.

        Raises:
            ValueError: rows took each other's place, as beams do, or logits are not finite.
        """
        if not self._goes_on(input_ids):
            self._prompt = input_ids.shape[1]
            pools = [self._pool[secrets.randbelow(len(self._pool))] for _ in range(len(input_ids))]
            self._rows = [_Row(key_lanes(one), self._watermark.tracker()) for one in pools]
        self._seen = input_ids
        changed = torch.full_like(scores, -math.inf)
        supports = filter_rows(scores, [self._filters] * len(scores))
        for number, (row, support) in enumerate(zip(self._rows, supports, strict=True)):
            if support is None:
                raise ValueError("the model gave logits that are not finite")
            completion = input_ids[number, self._prompt :].tolist()
            probs = row.next(self._watermark, completion, support)
            with np.errstate(divide="ignore"):
                logs = torch.from_numpy(np.log(probs)).to(scores)
            changed[number, torch.from_numpy(support.ids).to(scores.device)] = logs
        return changed  # type: ignore[return-value]

    def _goes_on(self, input_ids: torch.LongTensor) -> bool:
        """Whether these are the texts of the call before, each with one token more."""
        before = input_ids[:, :-1]
        if before.shape != self._seen.shape or torch.equal(before, self._seen):
            return before.shape == self._seen.shape
        if {*map(tuple, before.tolist())} <= {*map(tuple, self._seen.tolist())}:
            raise ValueError("beams leave nothing to mark: rows of a batch took each other's place")
        return False


@dataclass(slots=True)
class _Row:
    lanes: NDArray[np.int64]
    tracker: ContextTracker
    bits: float = OPENING_BITS
    before: dict[int, float] = field(default_factory=dict)

    def next(self, watermark: Watermark, completion: list[int], support: Support) -> NDArray[np.float64]:
        """Probabilities of the support for the next token: marked ones once the opening is spent."""
        if completion and self.bits > 0.0:
            self.bits += math.log2(self.before.get(completion[-1], 1.0))
        self.before = dict(zip(support.ids.tolist(), support.probs.tolist(), strict=True))
        context = None if self.bits > 0.0 else self.tracker.next_context(completion)
        if context is None:
            return support.probs
        return watermark.reweight(
            self.lanes[None],
            np.array([context], dtype=np.int64),
            support.ids[:, None],
            support.probs,
            np.array([0, support.ids.size]),
        )
