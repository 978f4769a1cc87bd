"""The engine on a CUDA GPU: the logits of transformers, and a completion that is detected."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.harness.random_model import save_random_model, small_llama
from tests.unit.gen_service.engine.architectures import SERVED, SlowRunner
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.watermark import Watermark

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU on this machine"),
]
KEY = bytes(range(16))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "llama"
    wide = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3}
    config = small_llama(**wide, initializer_range=0.2)
    save_random_model(path, config)
    return path


def test_probes_equal_independent_forwards_on_the_gpu(folder: Path) -> None:
    loaded = load_model(str(folder), EngineSettings(device="cuda"))
    plain = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").cuda().eval()
    text = np.random.default_rng(0).integers(0, 300, 20).tolist()
    runner = Runner(loaded.model, KvCache(64))
    runner.forward([Append(0, 0, text, is_chunk=True, wants_logits=False)])
    logits = runner.forward([Probe(0, 20, np.array([[5], [9], [77]]))])[0]
    with torch.inference_mode():
        expected = [plain(torch.tensor([[*text, token]]).cuda()).logits[0, -1] for token in (5, 9, 77)]
    torch.testing.assert_close(logits, torch.stack(expected), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", ["gpt-oss", "DeepSeek V3", "Gemma 3"])
def test_sinks_windows_and_smaller_values_equal_forwards_from_the_first_token(
    tmp_path: Path, name: str
) -> None:
    save_random_model(tmp_path, SERVED[name])
    model = load_model(str(tmp_path), EngineSettings(device="cuda")).model
    text = np.random.default_rng(3).integers(1, 300, 60).tolist()
    runner = Runner(model, KvCache(64))
    slow = SlowRunner(model)
    for piece in (
        Append(0, 0, text[:30], is_chunk=True, wants_logits=True),
        Append(0, 30, text[30:50], is_chunk=True, wants_logits=True),
        Append(0, 50, text[50:52], is_chunk=False, wants_logits=True),
        Probe(0, 52, np.array([[5, 1], [5, 2], [9, 1]])),
    ):
        (logits,), (expected,) = runner.forward([piece]), slow.forward([piece])
        torch.testing.assert_close(logits, expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("block_size", [1, 2, 3])
async def test_a_completion_made_on_the_gpu_is_detected(folder: Path, dtype: str, block_size: int) -> None:
    engine = Engine.load(str(folder), EngineSettings(device="cuda", dtype=dtype))
    engine.start()
    marking = Marking("key", 1, "profile", Watermark("synthid", block_size), KEY)
    sampling = SamplingParams(max_tokens=120, top_k=30, seed=1, ignore_eos=True)
    request = GenerationRequest("id", tuple(range(1, 20)), sampling, marking)
    ids = [token async for delta in engine.generate(request) for token in delta.token_ids]
    engine.stop(0)
    assert detect_direct(marking.watermark, KEY, ids).log10_p < -10
