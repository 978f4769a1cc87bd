"""Container limits, as the kernel's files say them."""

from functools import partial
from pathlib import Path

import psutil
import pytest

from ttmark.gen_service.engine.loop import engine
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.memory import available_memory
from ttmark.gen_service.engine.settings import EngineSettings

GIB = 2**30


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{value}\n")


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 64 GiB free."""
    machine = type("Machine", (), {"available": 64 * GIB})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)


def membership(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cgroup"
    path.write_text(text)
    return path


def test_without_a_limit_the_machine_s_memory_counts(tmp_path: Path) -> None:
    write(tmp_path / "fs", memory_max="max", memory_current=5 * GIB)
    assert available_memory(tmp_path / "fs", membership(tmp_path, "0::/\n")) == 64 * GIB
    assert available_memory(tmp_path / "nowhere", tmp_path / "nothing") == 64 * GIB


def test_a_container_s_limit_less_what_it_uses_counts(tmp_path: Path) -> None:
    write(
        tmp_path / "fs",
        memory_max=2 * GIB,
        memory_current=GIB,
        memory_stat=f"anon 1\ninactive_file {GIB // 4}",
    )
    assert available_memory(tmp_path / "fs", membership(tmp_path, "0::/\n")) == GIB + GIB // 4


def test_the_tightest_of_the_groups_above_counts(tmp_path: Path) -> None:
    write(tmp_path / "fs/pods", memory_max=3 * GIB, memory_current=2 * GIB)
    write(tmp_path / "fs/pods/one", memory_max=8 * GIB, memory_current=GIB)
    assert available_memory(tmp_path / "fs", membership(tmp_path, "0::/pods/one\n")) == GIB


def test_a_limit_of_cgroup_v1_counts_too(tmp_path: Path) -> None:
    folder = tmp_path / "fs/memory/docker/abc"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text(f"{2 * GIB}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{GIB}\n")
    groups = "12:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n"
    assert available_memory(tmp_path / "fs", membership(tmp_path, groups)) == GIB


def test_the_cache_of_an_engine_keeps_to_the_limit_of_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Path
) -> None:
    write(tmp_path / "fs", memory_max=2 * GIB, memory_current=GIB)
    limited = partial(available_memory, tmp_path / "fs", tmp_path / "nothing")
    monkeypatch.setattr(engine, "available_memory", limited)
    settings = EngineSettings(device="cpu", max_sequences=100_000, threads=1)
    bytes_per_token = 2 * 2 * 2 * 12 * 4  # layers, keys and values, heads, dimension, float32
    capacity = Engine.load(str(tiny_model), settings).kv_tokens * bytes_per_token
    assert 0.99 * GIB * settings.memory_share <= capacity <= GIB * settings.memory_share
