"""All layers in one call beside one operation after the other, to the bit."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, PretrainedConfig

from tests.harness.random_model import save_random_model
from tests.unit.gen_service.engine.architectures import SERVED
from tests.unit.gen_service.engine.test_quantised_models import TIED, load
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.compiled_layers import CompiledLayers
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.native import find_kernels

pytestmark = pytest.mark.skipif(find_kernels() is None, reason="no compiler, or no such processor")
MODELS = {
    "Llama": SERVED["Llama"],
    "biased": SERVED["Qwen 2"],
    "tied": TIED,
    "windows": MistralConfig(**{**SERVED["Mistral"].to_dict(), "sliding_window": 5}),
    "wide heads": LlamaConfig(**{**SERVED["Llama"].to_dict(), "head_dim": 80}),
}


def save(folder: Path, config: PretrainedConfig) -> None:
    """With biases that are not zero, where there are some."""
    save_random_model(folder, config)
    model = AutoModelForCausalLM.from_pretrained(folder)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(parameter.numel()))
    model.save_pretrained(folder)


def passes(runner: Runner) -> list[torch.Tensor]:
    """Logits and cached rows of two texts: prompts, branches, what was chosen of them, other tokens."""
    first, second = np.array([[1], [5], [9]]), np.array([[2, 3], [2, 4], [7, 3]])
    logits = runner.forward(
        [Append(0, 0, range(1, 12), True, True), Append(30, 0, range(20, 27), True, False)]
    )
    probes = [Probe(0, 11, first), Probe(30, 7, second)]
    logits += runner.forward(probes)
    if (branches := probes[1].branches) is not None:
        logits += runner.forward([Append(30, 9, [6], False, True, (branches, branches.rows[1]))])
    else:
        logits += runner.forward([Append(30, 7, [2, 4, 6], False, True)])
    logits += runner.forward([Append(0, 11, [5, 8, 13], False, True), Probe(30, 10, first)])
    logits += runner.forward([Probe(30, 10, np.arange(40)[:, None])])  # many
    cached = [arena.rows[[*range(14), *range(30, 40)]] for arena in runner.cache._layers.values()]
    return logits + cached


@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("bits", ["int4", "int8"])
@pytest.mark.parametrize("name", list(MODELS))
def test_a_pass_has_the_bits_of_its_operations_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bits: str, dtype: str, reproducible: bool
) -> None:
    save(tmp_path, MODELS[name])
    loaded = load(tmp_path, dtype=dtype, quantization=bits, threads=1)
    calls: list[int] = []
    compute = CompiledLayers.__call__

    def counted(*arguments: object) -> None:
        calls.append(1)
        compute(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(CompiledLayers, "__call__", counted)
    runs = []
    for compiled in (True, False):
        runner = loaded.acceleration.runner(loaded.model, KvCache(64), reproducible=reproducible)
        assert runner.fused is not None
        if not compiled:
            monkeypatch.setattr(runner.fused, "_compiled", None)
        if reproducible:
            runner.measure_row_counts()
            calls.clear()
        runs.append(passes(runner))
        assert len(calls) == (4 if compiled else 0)
        calls.clear()
    assert all(map(torch.equal, *runs))
