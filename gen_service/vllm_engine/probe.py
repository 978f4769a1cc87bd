"""The probe: one more forward of vLLM's model over the branches of a step's blocks, between two commits."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from vllm.forward_context import set_forward_context
from vllm.v1.attention.backend import CommonAttentionMetadata

from ttmark.gen_service.vllm_engine.scratch import Ints, plan_scratch

Path = tuple[int, ...]
Branch = tuple[int, int, Path]
"""Row of the batch, tokens in the cache, and the path that is probed after them."""


class Probe:
    """Logits of branches, by vLLM's own attention over scratch blocks.

    Args:
        runner: vLLM's model runner.
        blocks: scratch blocks of each KV group; they follow those that the scheduler was told of.
    """

    def __init__(self, runner: Any, blocks: int) -> None:
        self._runner = runner
        self._blocks = blocks
        self.rows = 0

    def logits(self, branches: Sequence[Branch]) -> torch.Tensor:
        """What comes after each branch, [branches, vocab]; as many forwards as the scratch blocks need."""
        return torch.cat([self._forward(part) for part in self._parts(branches)])

    def _parts(self, branches: Sequence[Branch]) -> Iterator[Sequence[Branch]]:
        deepest = max(len(path) for _, _, path in branches)
        size = max(1, self._blocks // (1 if deepest == 1 else 2))
        for start in range(0, len(branches), size):
            yield branches[start : start + size]

    def _forward(self, branches: Sequence[Branch]) -> torch.Tensor:
        runner, device = self._runner, self._runner.device
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
        for group in range(len(runner.kv_cache_config.kv_cache_groups)):
            self._plan_group(group, branches, lengths, depths, shared, attention, slots)
        with set_forward_context(attention, runner.vllm_config, num_tokens=len(ids), slot_mapping=slots):
            hidden = runner.model(input_ids=ids, positions=shared["positions"])
        self.rows += len(ids)
        last = torch.from_numpy(ends - 1).to(device)
        logits: torch.Tensor = runner.model.compute_logits(hidden[last]).float()
        return logits

    def _plan_group(
        self,
        group: int,
        branches: Sequence[Branch],
        lengths: Ints,
        depths: Ints,
        shared: dict[str, torch.Tensor],
        attention: dict[str, Any],
        slots: dict[str, torch.Tensor],
    ) -> None:
        """Copies a KV group's blocks, and puts its layers' metadata and slots into the last two arguments."""
        runner, device = self._runner, self._runner.device
        layers = runner.kv_cache_config.kv_cache_groups[group].layer_names
        caches = self._caches(layers)
        table = runner.input_batch.block_table[group]
        owners = [owner for owner, _, _ in branches]
        width = int((lengths + depths - 1).max()) // table.block_size + 1
        plan = plan_scratch(
            table.block_table.np[owners, :width],
            lengths,
            depths,
            table.block_size,
            self._first_block(group, len(caches[0])),
        )
        if len(plan.sources):
            source, target = (torch.from_numpy(ids).to(device) for ids in (plan.sources, plan.targets))
            for cache in caches:
                cache[target] = cache[source]
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
        for part in runner.attn_groups[group]:
            built = part.get_metadata_builder(0).build(0, common)
            attention.update(dict.fromkeys(part.layer_names, built))
        slots.update(dict.fromkeys(layers, written))

    def _caches(self, layers: Sequence[str]) -> list[torch.Tensor]:
        """Cache of each layer [blocks, ...]; of layers that share one, once."""
        context = self._runner.compilation_config.static_forward_context
        found = (context[layer].kv_cache for layer in layers)
        return list({cache.data_ptr(): cache for cache in found}.values())

    def _first_block(self, group: int, cached_blocks: int) -> int:
        """The group's first scratch block, in the blocks of its attention kernel."""
        config = self._runner.kv_cache_config
        known = int(config.num_blocks) - self._blocks * len(config.kv_cache_groups)
        return (known + group * self._blocks) * (cached_blocks // int(config.num_blocks))
