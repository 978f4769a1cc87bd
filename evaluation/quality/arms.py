"""The arms of a comparison: unmarked answers, ours as a service marks by default, and marks of others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ttmark.evaluation.engine_source import EngineSource, completion_request
from ttmark.evaluation.experiment_cells import Cell, prf_key, sampling_seed
from ttmark.evaluation.quality.peers import RepeatingGumbel, SynthidMark
from ttmark.gen_service.decoding.request import GenerationRequest, Marking
from ttmark.shared.schemas.profile import profile_fields
from ttmark.shared.watermark.schemes.watermark import Watermark

EACH = 8
"""Answers to a prompt, one after the other."""
ONE_KEY = 4
"""The first of them, which one key marks; each of the others has a key of its own."""


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


def ours() -> Watermark:
    """Of a key for which nothing is said."""
    fields = profile_fields()
    return Watermark(fields["scheme"], fields.get("block_size", 2), fields["context_width"])


OURS, GUMBEL, SYNTHID, UNMARKED = "ours", "gumbel", "synthid", "unmarked"
KINDS: Mapping[str, Kind] = {
    OURS: Kind("ours, as by default", ours, profile_fields()["pool"], 8.0),
    GUMBEL: Kind("single-token Gumbel that marks repeats", RepeatingGumbel),
    SYNTHID: Kind("transformers' SynthID-Text", SynthidMark),
}


@dataclass(frozen=True, slots=True)
class Arm(Cell):
    """How the answers of an arm are made; what marks them stands in `KINDS`."""

    kind: str = UNMARKED

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.setting.slug}-n{self.tokens}"

    @property
    def title(self) -> str:
        return f"answers, {self.kind}"


class AnswerSource(EngineSource):
    """Answers that end where the model ends them: `EACH` in turn to a prompt, `ONE_KEY` by one key."""

    def request(self, cell: Cell, index: int, seed: int) -> GenerationRequest:
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
