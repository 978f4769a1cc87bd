"""What is measured at a start: choices that outlive the process."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import torch

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.engine.model import autotune
from ttmark.gen_service.engine.model.autotune import Choice, ChoiceFile, choice_key
from ttmark.services.state_folder import check_state_folder
from ttmark.shared.cpu import processor_name

OPTIONS = [Choice(dtype, threads) for dtype in ("float32", "bfloat16") for threads in (1, 2)]


def test_what_was_kept_is_found_by_its_key_alone(tmp_path: Path) -> None:
    path, umask = tmp_path / "state" / "choices.json", os.umask(0)
    ChoiceFile(path).keep("a", OPTIONS[1])
    ChoiceFile(path).keep("b", OPTIONS[2])
    os.umask(umask)
    check_state_folder(path.parent)
    found = [ChoiceFile(path).find(key, OPTIONS) for key in ("a", "b", "c")]
    assert found == [OPTIONS[1], OPTIONS[2], None]
    assert [each.name for each in path.parent.iterdir()] == ["choices.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'{"a": 5}', b'{"a": {"dtype": "float7", "threads": 1}}', b"\xff\xfe"]
)
def test_a_damaged_file_holds_nothing_and_is_written_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "choices.json"
    path.write_bytes(content)
    assert ChoiceFile(path).find("a", OPTIONS) is None
    ChoiceFile(path).keep("a", OPTIONS[3])
    assert ChoiceFile(path).find("a", OPTIONS) == OPTIONS[3]


def test_a_place_where_nothing_can_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = ChoiceFile(tmp_path / "file" / "choices.json")
    file.keep("a", OPTIONS[0])
    assert file.find("a", OPTIONS) is None


def test_a_choice_holds_for_one_processor_torch_model_and_set_of_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    keys = [choice_key(tmp_path, OPTIONS, "auto"), choice_key(tmp_path, OPTIONS[:2], "auto")]
    keys.append(choice_key(tmp_path, OPTIONS, "int8"))
    for change in (
        lambda patch: patch.setattr(autotune, "processor_name", lambda: "another"),
        lambda patch: patch.setattr(autotune, "find_kernels", lambda: None),
        lambda patch: patch.setattr(torch, "__version__", "0.0"),
        lambda _: os.utime(weights, (0, 0)),
        lambda _: (tmp_path / "generation_config.json").write_text('{"eos_token_id": 3}'),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            keys.append(choice_key(tmp_path, OPTIONS, "auto"))
    assert len(set(keys)) == len(keys)
    assert choice_key(tmp_path, OPTIONS, "auto") == keys[-1]


def test_a_processor_without_a_name_is_called_what_the_platform_says(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name : Fast One\nmodel name : Fast One\n")
    assert processor_name(tmp_path / "cpuinfo") == "Fast One"
    assert processor_name(tmp_path / "none") == processor_name(tmp_path)


def test_the_process_that_tries_a_model_ends_with_the_one_that_asked() -> None:
    asked = {"name": "demo", "folder": str(DEMO_MODEL_PATH), "settings": {}, "threads": 1}
    command = [sys.executable, "-m", "ttmark.gen_service.engine.model.speed_trial"]
    ended = subprocess.run(command, input=orjson.dumps(asked) + b"\n", capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")
