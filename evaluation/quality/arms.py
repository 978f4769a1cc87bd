"""The arms of a comparison: unmarked answers, ours as a service marks by default, and marks of others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import SynthIDTextWatermarkLogitsProcessor

from ttmark.evaluation.engine_source import EngineSource, completion_request
from ttmark.evaluation.experiment_cells import Cell, prf_key, sampling_seed
from ttmark.gen_service.engine import GenerationRequest, Marking
from ttmark.shared.schemas.profile_presets import profile_fields
from ttmark.shared.watermark import ContextTracker, Watermark

EACH = 8
"""Answers to a prompt, one after the other."""
ONE_KEY = 4
"""The first of them, which one key marks; each of the others has a key of its own."""
_WIDTH = 4
"""Tokens that the marks of others look back, as vLLM's and transformers' do by default."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How an arm marks.

    Attributes:
        pool: PRF keys of a key, one of which marks an answer.
        opening_bits: see `Marking`.
    """

    title: str
    watermark: Callable[[], Watermark]
    pool: int = 1
    opening_bits: float = 0.0


class _FromTheFirst(ContextTracker):
    """Marks from the first token on, behind zeros; maybe where a context comes again, too."""

    def __init__(self, marks_repeats: bool) -> None:
        super().__init__(1, _WIDTH)
        self._marks_repeats = marks_repeats

    def next_context(self, tokens: Sequence[int]) -> tuple[int, ...] | None:
        if self._marks_repeats:
            self._first_use.clear()
        return super().next_context([0] * _WIDTH + [*tokens])


class RepeatingGumbel(Watermark):
    """Single tokens whose choice is the same wherever the four tokens before are the same."""

    def __init__(self) -> None:
        super().__init__("gumbel", 1, _WIDTH)

    def tracker(self) -> ContextTracker:
        return _FromTheFirst(marks_repeats=True)


class TransformersSynthid(Watermark):
    """SynthID-Text as transformers computes it, of the tokens that the filters leave."""

    def __init__(self) -> None:
        super().__init__("synthid", 1, _WIDTH)

    def tracker(self) -> ContextTracker:
        return _FromTheFirst(marks_repeats=False)

    def reweight(
        self,
        keys: NDArray[np.int64],
        contexts: NDArray[np.int64],
        blocks: NDArray[np.int64],
        probs: NDArray[np.float64],
        offsets: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """See `Watermark.reweight`."""
        weighted = probs.copy()
        ends = pairwise(offsets.tolist())
        for lanes, context, (start, stop) in zip(keys.tolist(), contexts, ends, strict=True):
            processor, tokens = _processor(*lanes), blocks[start:stop]
            grams = np.hstack([np.tile(context, (len(tokens), 1)), tokens])  # [tokens, 5]
            values = processor.sample_g_values(processor.compute_ngram_keys(torch.from_numpy(grams)[None]))
            with np.errstate(divide="ignore"):
                scores = torch.from_numpy(np.log(probs[start:stop]))[None]
            weighted[start:stop] = processor.update_scores(scores, values)[0].exp().numpy()
        return weighted


@lru_cache(maxsize=256)
def _processor(*lanes: int) -> Any:
    """With 30 keys, made of the lanes of one of ours."""
    keys = np.random.default_rng([lane & (2**64 - 1) for lane in lanes]).integers(1 << 31, size=30)
    return SynthIDTextWatermarkLogitsProcessor(
        _WIDTH + 1, keys.tolist(), 1 << 16, 0, 1024, torch.device("cpu")
    )


def _ours() -> Watermark:
    fields = profile_fields()
    return Watermark(fields["scheme"], fields.get("block_size", 2), fields["context_width"])


OURS, GUMBEL, SYNTHID, UNMARKED = "ours", "gumbel", "synthid", "unmarked"
KINDS: Mapping[str, Kind] = {
    OURS: Kind("ours, as by default", _ours, profile_fields()["pool"], 8.0),
    GUMBEL: Kind("single-token Gumbel that marks repeats", RepeatingGumbel),
    SYNTHID: Kind("transformers' SynthID-Text", TransformersSynthid),
}


@dataclass(frozen=True, slots=True)
class Arm(Cell):
    """How the answers of an arm are made; what marks them stands in `KINDS`."""

    kind: str = UNMARKED

    @property
    def name(self) -> str:
        """See `Cell`."""
        return f"{self.kind}-{self.setting.slug}-n{self.tokens}"

    @property
    def title(self) -> str:
        """See `Cell`."""
        return f"answers, {self.kind}"


class AnswerSource(EngineSource):
    """Answers that end where the model ends them: `EACH` in turn to a prompt, `ONE_KEY` by one key."""

    def request(self, cell: Cell, index: int, seed: int) -> GenerationRequest:
        """See `EngineSource`."""
        number, place = divmod(index, EACH)
        text_seed = sampling_seed(seed, cell.name, index)
        kind = KINDS.get(getattr(cell, "kind", UNMARKED))
        marking = None
        if kind is not None:
            key = 0 if place < ONE_KEY else place
            chosen = prf_key(seed, cell.name, number, key, text_seed % kind.pool)
            mark = kind.watermark()
            marking = Marking("evaluation", 1, "evaluation", mark, chosen, kind.opening_bits)
        prompt_ids = self.prompts[number % len(self.prompts)]
        return completion_request(cell, index, prompt_ids, text_seed, marking, ignore_eos=False)
