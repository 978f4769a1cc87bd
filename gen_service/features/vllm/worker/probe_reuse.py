"""Rows of a step that need not be computed: the probe has done so, and they still lie in scratch blocks.

After a decision vLLM computes the block's tokens, all but the last of which are a branch that was probed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttmark.gen_service.features.vllm.worker.probe import BranchLogits


@dataclass(frozen=True, slots=True)
class Kept:
    """What the step after a decision may leave out.

    Attributes:
        branch: number of the branch in the probe's last forward.
        start: tokens before it.
        drafts: of the block: its tokens but for the first.
    """

    branch: int
    start: int
    drafts: tuple[int, ...]


class KeptRows:
    """Branches that were chosen in the last step, for the next one alone: another probe overwrites them."""

    def __init__(self, probe: "BranchLogits") -> None:
        self._probe = probe
        self._kept: dict[str, Kept] = {}

    def keep(self, request_id: str, row: int, first: int, drafts: Sequence[int]) -> None:
        """Remembers the branch of a block that was decided now, if the probe still has it.

        Args:
            row: of the batch.
            first: token of the block; `drafts` are the others.
        """
        branch = self._probe.find(row, (first, *drafts[:-1]))
        if drafts and branch is not None:
            self._kept[request_id] = Kept(branch, self._probe.length(branch), tuple(drafts))

    def skip(self, scheduled: Any, batch: Any, requests: Any) -> dict[str, list[int]]:
        """Takes what is kept out of a step, and puts it into the cache; drafts of the requests it is for.

        Those that vLLM schedules otherwise, as after a preemption, are computed.

        Args:
            scheduled: vLLM's `SchedulerOutput`, a copy that is changed.
            batch: vLLM's `InputBatch`, requests: its states of them; both follow.
        """
        kept, self._kept = self._kept, {}
        counts, drafts = scheduled.num_scheduled_tokens, scheduled.scheduled_spec_decode_tokens
        found = {
            name: each
            for name, each in kept.items()
            if counts.get(name) == len(each.drafts) + 1
            and tuple(drafts.get(name, ())) == each.drafts
            and requests[name].num_computed_tokens == each.start
        }
        rows = [batch.req_id_to_index[name] for name in found]
        if found:
            self._probe.adopt([each.branch for each in found.values()], rows)
        self._probe.forget()  # rows of the batch are others from now on
        for (name, each), row in zip(found.items(), rows, strict=True):
            skipped = len(each.drafts)
            counts[name] -= skipped
            scheduled.total_num_scheduled_tokens -= skipped
            del drafts[name]
            requests[name].num_computed_tokens += skipped
            batch.num_computed_tokens_cpu[row] += skipped
        return {name: list(each.drafts) for name, each in found.items()}
