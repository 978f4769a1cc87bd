"""The probe: one more forward of vLLM's model over the branches of a step's blocks, between two commits."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from vllm.forward_context import set_forward_context
from vllm.v1.attention.backend import CommonAttentionMetadata

from ttmark.gen_service.decoding.filtered_tokens import Ints
from ttmark.gen_service.features.vllm.worker.cache_group import CacheGroup, plan_adoption, plan_scratch

Path = tuple[int, ...]
Branch = tuple[int, int, Path]
"""Row of the batch, tokens in the cache, and the path that is probed after them."""


class BranchLogits:
    """Logits of branches, by vLLM's own attention over scratch blocks.

    Args:
        runner: vLLM's model runner.
        blocks: scratch blocks of each KV group; they follow those that the scheduler was told of.
    """

    def __init__(self, runner: Any, blocks: int) -> None:
        self._runner = runner
        self._blocks = blocks
        self._groups = [
            CacheGroup(runner, number, blocks)
            for number in range(len(runner.kv_cache_config.kv_cache_groups))
        ]
        self._probed: dict[tuple[int, Path], int] = {}  # of the last forward, by row of the batch and path
        self._last: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))  # lengths, depths

    def logits(self, branches: Sequence[Branch]) -> torch.Tensor:
        """What comes after each branch, [branches, vocab]; as many forwards as the scratch blocks need."""
        found = [self._forward(part) for part in self._parts(branches)]
        return found[0] if len(found) == 1 else torch.cat(found)

    def find(self, row: int, path: Path) -> int | None:
        """Number of a branch whose keys and values still lie in scratch blocks: one of the last forward."""
        return self._probed.get((row, path))

    def forget(self) -> None:
        self._probed = {}

    def length(self, branch: int) -> int:
        return int(self._last[0][branch])

    def adopt(self, branches: Sequence[int], rows: Sequence[int]) -> None:
        """Copies branches of the last forward into the blocks of their parents.

        Args:
            rows: of the batch, where the parents are now; their tables reach as far as the branches do.
        """
        lengths, depths = self._last
        for group in self._groups:
            tables = group.tables(rows, int((lengths + depths - 1).max()) // group.block_size + 1)
            chosen = np.array(branches, dtype=np.int64)
            group.copy(*plan_adoption(tables, chosen, lengths, depths, group.block_size, group.first_scratch))

    def _parts(self, branches: Sequence[Branch]) -> Iterator[Sequence[Branch]]:
        deepest = max(len(path) for _, _, path in branches)
        size = max(1, self._blocks // (1 if deepest == 1 else 2))
        for start in range(0, len(branches), size):
            yield branches[start : start + size]

    def _forward(self, branches: Sequence[Branch]) -> torch.Tensor:
        runner, device = self._runner, self._runner.device
        self._probed = {}
        lengths = np.array([length for _, length, _ in branches], dtype=np.int64)
        depths = np.array([len(path) for _, _, path in branches], dtype=np.int64)
        ids = torch.tensor([token for _, _, path in branches for token in path], device=device)
        ends = np.cumsum(depths)
        positions = np.repeat(lengths - ends + depths, depths) + np.arange(ends[-1])
        shared = {
            "starts": torch.from_numpy(np.concatenate([[0], ends])).int(),
            "lengths": torch.from_numpy(lengths + depths).int(),
            "positions": torch.from_numpy(positions).to(device),
        }
        attention: dict[str, Any] = {}
        slots: dict[str, torch.Tensor] = {}
        for number in range(len(self._groups)):
            self._plan_group(number, branches, lengths, depths, shared, attention, slots)
        with set_forward_context(attention, runner.vllm_config, num_tokens=len(ids), slot_mapping=slots):
            hidden = runner.model(input_ids=ids, positions=shared["positions"])
        if len(ids) > len(branches):
            hidden = hidden[torch.from_numpy(ends - 1).to(device)]
        logits: torch.Tensor = runner.model.compute_logits(hidden)
        self._probed = {(row, path): number for number, (row, _, path) in enumerate(branches)}
        self._last = lengths, depths
        return logits

    def _plan_group(
        self,
        number: int,
        branches: Sequence[Branch],
        lengths: Ints,
        depths: Ints,
        shared: dict[str, torch.Tensor],
        attention: dict[str, Any],
        slots: dict[str, torch.Tensor],
    ) -> None:
        """Copies a KV group's blocks, and puts its layers' metadata and slots into the last two arguments."""
        runner, device, group = self._runner, self._runner.device, self._groups[number]
        width = int((lengths + depths - 1).max()) // group.block_size + 1
        tables = group.tables([row for row, _, _ in branches], width)
        plan = plan_scratch(tables, lengths, depths, group.block_size, group.first_scratch)
        group.copy(plan.sources, plan.targets)
        written = torch.from_numpy(plan.slots).to(device)
        common = CommonAttentionMetadata(
            query_start_loc=shared["starts"].to(device),
            query_start_loc_cpu=shared["starts"],
            seq_lens=shared["lengths"].to(device),
            num_reqs=len(branches),
            num_actual_tokens=len(written),
            max_query_len=int(depths.max()),
            max_seq_len=int(shared["lengths"].max()),
            block_table_tensor=torch.from_numpy(plan.tables).int().to(device),
            slot_mapping=written,
            causal=True,
            positions=shared["positions"],
            is_prefilling=torch.zeros(len(branches), dtype=torch.bool),
            seq_lens_cpu_upper_bound=shared["lengths"],
        )
        for part in runner.attn_groups[number]:
            built = part.get_metadata_builder(0).build(0, common)
            attention.update(dict.fromkeys(part.layer_names, built))
        slots.update(dict.fromkeys(group.layers, written))
