"""What a model takes once it serves: a process of its own measures, and nothing is there twice."""

import gc
import queue
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
import torch
from transformers import Qwen2Config

from tests.harness.random_model import SMALL, save_random_model
from tests.unit.gen_service.engine.architectures import SERVED
from tests.unit.gen_service.engine.asking import StartEngine, ask, collect
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.loop import engine
from ttmark.gen_service.engine.model import loading
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.autotune import Choice
from ttmark.gen_service.engine.model.loaded_model import LoadedModel
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.transformers_model import can_pack, try_each
from ttmark.gen_service.engine.settings import EngineSettings

AUTO = EngineSettings(device="cpu", dtype="auto", threads=1)


@pytest.fixture(scope="module")
def kept(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, Path]:
    """A model of a first start, and the file that it kept its choice in."""
    path = tmp_path_factory.mktemp("state") / "choices.json"
    return load_model(str(tiny_model), settings_with(path)), path


def settings_with(choices: Path) -> EngineSettings:
    return EngineSettings(device="cpu", dtype="auto", threads=1, choices=choices)


def logits(loaded: LoadedModel) -> torch.Tensor:
    runner = loaded.acceleration.runner(loaded.model, KvCache(8))
    return torch.cat([runner.probe_once(rows) for rows in (1, 7)])


def changed(kept: Path, path: Path, **change: Any) -> EngineSettings:
    """Settings with a file of the same choice, but for what is changed."""
    choices = {key: choice | change for key, choice in orjson.loads(kept.read_bytes()).items()}
    path.write_bytes(orjson.dumps(choices))
    return settings_with(path)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_second_start_measures_nothing_and_gives_the_bits_of_transformers_module(
    tiny_model: Path,
    kept: tuple[LoadedModel, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
) -> None:
    monkeypatch.delattr(loading, "_tried_apart")
    second = load_model(str(tiny_model), changed(kept[1], tmp_path / "choices.json", dtype=dtype))
    module = load_model(str(tiny_model), EngineSettings(device="cpu", dtype=dtype))
    assert second.model.dtype == getattr(torch, dtype)
    assert torch.equal(logits(second), logits(module))
    for name in ("vocab_size", "longest", "start"):
        assert getattr(second.facts, name) == getattr(module.facts, name)
    assert tuple(second.facts.ends) == tuple(module.facts.ends)
    numbers = 2 * 2 * 2 * 12  # of layers, sides, heads, and in a head
    assert kept[0].facts.bytes_per_token == numbers * kept[0].model.dtype.itemsize


def test_nothing_of_transformers_is_imported_and_one_choice_is_kept_by_the_first_start_and_the_second(
    tiny_model: Path, tmp_path: Path
) -> None:
    code = (
        "import json, sys, torch\n"
        "from pathlib import Path\n"
        "import ttmark.services.composition.generation_service\n"
        "from ttmark.gen_service.engine.loop.engine import Engine\n"
        "from ttmark.gen_service.engine.settings import EngineSettings\n"
        "torch.set_num_threads(3)\n"
        "settings = EngineSettings(device='cpu', dtype='auto', threads='auto', choices=Path(sys.argv[2]))\n"
        "for _ in range(2):\n"
        "    Engine.load(sys.argv[1], settings)\n"
        "heavy = {'transformers', 'scipy', 'sympy', 'accelerate', 'huggingface_hub', 'gguf'}\n"
        "print(heavy & set(sys.modules), [key[-40:] for key in json.loads(settings.choices.read_bytes())])"
    )
    command = [sys.executable, "-c", code, str(tiny_model), str(tmp_path / "choices.json")]
    offered = "bfloat16/1 bfloat16/3 float32/1 float32/3 auto"[-40:]
    assert subprocess.check_output(command, text=True) == f"set() ['{offered}']\n"


@pytest.mark.parametrize("by", ["its files", "transformers"])
def test_no_matrix_stays_beside_the_packed_one(
    kept: tuple[LoadedModel, Path], tiny_model: Path, tmp_path: Path, by: str
) -> None:
    """Nor one in float32, that was measured and not chosen."""
    if not can_pack(torch.bfloat16):
        pytest.skip("oneDNN packs no bf16 on this processor")
    settings = changed(kept[1], tmp_path / "choices.json", dtype="bfloat16")
    if by == "transformers":
        settings = EngineSettings(device="cpu", dtype="bfloat16")
    gc.collect()
    before = {id(each) for each in plain_matrices()}
    loaded = load_model(str(tiny_model), settings)
    gc.collect()
    stays = [each for each in plain_matrices() if id(each) not in before]
    assert loaded.acceleration.weights == "packed"
    assert {(tuple(each.shape), each.dtype) for each in stays} == {((300, 48), torch.bfloat16)}  # embedding


def plain_matrices() -> list[torch.Tensor]:
    everything = (each for each in gc.get_objects() if type(each) in (torch.Tensor, torch.nn.Parameter))
    return [each for each in everything if each.dim() == 2 and each.numel() > 1000 and not each.is_mkldnn]


def test_what_was_kept_of_another_model_is_measured_anew(
    tiny_model: Path, kept: tuple[LoadedModel, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (good,) = (Choice(**choice) for choice in orjson.loads(kept[1].read_bytes()).values())
    monkeypatch.setattr(loading, "_tried_apart", lambda *_: good)
    assert good.plain is not None
    model = good.plain["model"]
    for wrong in (
        {},
        good.plain | {"facts": {"vocab_size": 3}},
        good.plain | {"model": model | {"described": model["described"] | {"windows": [None] * 3}}},
    ):
        settings = changed(kept[1], tmp_path / "choices.json", plain=wrong)
        with structlog.testing.capture_logs() as logs:
            assert torch.equal(logits(load_model(str(tiny_model), settings)), logits(kept[0]))
        assert [line["event"] for line in logs] == ["kept_choice_unusable"]
        assert orjson.loads((tmp_path / "choices.json").read_bytes()).popitem()[1] == asdict(good)


@pytest.mark.parametrize("name", ["Qwen 2", "Qwen 3", "Mistral"])
def test_which_models_need_transformers_is_seen(tmp_path: Path, name: str) -> None:
    save_random_model(tmp_path, SERVED[name])
    needs = try_each(name, tmp_path, AUTO).plain is None
    assert needs == (name == "Qwen 3")


def test_what_the_process_that_measures_refuses_is_refused(tmp_path: Path) -> None:
    save_random_model(tmp_path, Qwen2Config(**SMALL, initializer_range=float("inf")))
    with pytest.raises(ModelLoadError, match="logits are not finite"):
        load_model(str(tmp_path), settings_with(tmp_path / "choices.json"))


async def test_an_engine_without_work_gives_memory_back_once(
    start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: queue.Queue[int] = queue.Queue()
    monkeypatch.setattr(engine, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(engine, "release_free_memory", lambda: released.put(0))
    running = start_engine()
    released.get(timeout=60)
    await collect(running, ask(running, max_tokens=4))
    released.get(timeout=60)
    with pytest.raises(queue.Empty):
        released.get(timeout=0.5)
