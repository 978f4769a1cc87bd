"""Which rows a step leaves out, with stand-ins for vLLM's lists and for the probe."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ttmark.gen_service.features.vllm.probe_reuse import KeptRows


class Probe:
    """Has branches (7,) and (8,) of row 0, and (5, 6) of row 1, after 20 and 30 tokens."""

    def __init__(self) -> None:
        self.branches = {(0, (7,)): 0, (0, (8,)): 1, (1, (5, 6)): 2}
        self.adopted: list[tuple[list[int], list[int]]] = []

    def find(self, row: int, path: tuple[int, ...]) -> int | None:
        return self.branches.get((row, path))

    def length(self, branch: int) -> int:
        return [20, 20, 30][branch]

    def adopt(self, branches: Sequence[int], rows: Sequence[int]) -> None:
        self.adopted.append((list(branches), list(rows)))

    def forget(self) -> None:
        self.branches.clear()


class Step:
    """A step of two requests, whose places in the batch have changed."""

    def __init__(self) -> None:
        self.scheduled = SimpleNamespace(
            num_scheduled_tokens={"a": 2, "b": 3},
            scheduled_spec_decode_tokens={"a": [9], "b": [6, 4]},
            total_num_scheduled_tokens=5,
        )
        self.batch = SimpleNamespace(req_id_to_index={"a": 1, "b": 0}, num_computed_tokens_cpu=[30, 20])
        self.requests = {
            "a": SimpleNamespace(num_computed_tokens=20),
            "b": SimpleNamespace(num_computed_tokens=30),
        }

    def skip(self, kept: KeptRows) -> dict[str, list[int]]:
        return kept.skip(self.scheduled, self.batch, self.requests)


def keep(probe: Any) -> KeptRows:
    kept = KeptRows(probe)
    kept.keep("a", 0, 8, [9])
    kept.keep("b", 1, 5, [6, 4])
    return kept


def test_rows_of_the_chosen_branches_are_left_out_and_adopted() -> None:
    probe, step = Probe(), Step()
    assert step.skip(keep(probe)) == {"a": [9], "b": [6, 4]}
    assert probe.adopted == [([1, 2], [1, 0])]
    assert step.scheduled.num_scheduled_tokens == {"a": 1, "b": 1}
    assert step.scheduled.total_num_scheduled_tokens == 2
    assert step.scheduled.scheduled_spec_decode_tokens == {}
    assert step.batch.num_computed_tokens_cpu == [32, 21]
    assert [each.num_computed_tokens for each in step.requests.values()] == [21, 32]


@pytest.mark.parametrize("what", ["preempted", "drafts dropped", "other drafts", "not scheduled"])
def test_what_vllm_schedules_otherwise_is_computed(what: str) -> None:
    probe, step = Probe(), Step()
    if what == "preempted":
        step.requests["a"].num_computed_tokens = 16
    elif what == "drafts dropped":
        step.scheduled.num_scheduled_tokens["a"] = 1
        del step.scheduled.scheduled_spec_decode_tokens["a"]
    elif what == "other drafts":
        step.scheduled.scheduled_spec_decode_tokens["a"] = [-1]
    else:
        del step.scheduled.num_scheduled_tokens["a"]
    before = step.scheduled.num_scheduled_tokens.get("a")
    assert step.skip(keep(probe)) == {"b": [6, 4]}
    assert probe.adopted == [([2], [0])]
    assert step.scheduled.num_scheduled_tokens.get("a") == before


def test_a_branch_is_kept_for_one_step_and_one_that_the_probe_has_not_is_not_kept() -> None:
    probe = Probe()
    kept = keep(probe)
    Step().skip(kept)
    assert Step().skip(kept) == {}
    kept.keep("a", 0, 8, [9])  # of an earlier step's probe
    assert Step().skip(kept) == {}
    probe.branches[0, (8,)] = 1
    kept.keep("b", 0, 8, [])
    assert Step().skip(kept) == {}
    assert len(probe.adopted) == 1
