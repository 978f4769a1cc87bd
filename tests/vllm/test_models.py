"""Models and arguments that take an engine of their own: layers of two kinds, two tensor-parallel ranks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.vllm.conftest import complete_all, embedded_engine, nothing_left
from tests.vllm.every_kind import Maker
from ttmark.gen_service.engine import Engine

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")


def test_two_kv_groups_one_with_a_sliding_window(gemma: Path, started: Callable[..., Any]) -> None:
    running = started(gemma, {"num_gpu_blocks_override": 48}, scratch_blocks=40)
    assert len(running._host._config.model_config.hf_text_config.layer_types) == 4
    for embedded in embedded_engine(gemma):
        own = Maker(embedded.tokenizer, tuple(embedded.eos_token_ids))
        asked = [own.request(number) for number in range(24)]
        ours, theirs = complete_all(embedded, asked), complete_all(running, asked)
    assert [each.said for each in theirs] == [each.said for each in ours]


def test_two_tensor_parallel_ranks_are_as_one(
    llama: Path, embedded: Engine, started: Callable[..., Any]
) -> None:
    maker = Maker(embedded.tokenizer, tuple(embedded.eos_token_ids))
    running = started(llama, {"tensor_parallel_size": 2})
    asked = [maker.request(number) for number in range(24)]
    unseeded = replace(asked[2], sampling=replace(asked[2].sampling, seed=None))
    ours, (*theirs, last) = complete_all(embedded, asked), complete_all(running, [*asked, unseeded])
    assert [each.said for each in theirs] == [each.said for each in ours]
    assert last.finish_reason is not None
    assert nothing_left(running)
