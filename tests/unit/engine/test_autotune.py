"""What is measured at a start: choices that outlive the process."""

from pathlib import Path

import orjson
import pytest
import torch

from ttmark.gen_service.engine import Engine, EngineSettings, autotune
from ttmark.gen_service.engine.autotune import Choice, ChoiceFile, choice_key
from ttmark.shared.processor import processor_name

OPTIONS = [Choice(dtype, threads) for dtype in ("float32", "bfloat16") for threads in (1, 2)]


def test_what_was_kept_is_found_by_its_key_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "choices.json"
    ChoiceFile(path).keep("a", OPTIONS[1])
    ChoiceFile(path).keep("b", OPTIONS[2])
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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = choice_key(b"{}", OPTIONS)
    others = [choice_key(b"{} ", OPTIONS), choice_key(b"{}", OPTIONS[:2])]
    monkeypatch.setattr(autotune, "processor_name", lambda: "another")
    others.append(choice_key(b"{}", OPTIONS))
    monkeypatch.undo()
    monkeypatch.setattr(torch, "__version__", "0.0")
    others.append(choice_key(b"{}", OPTIONS))
    assert len({key, *others}) == 5


def test_a_second_start_measures_nothing_and_chooses_the_same(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds_of(run: object, rows: int) -> float:
        return float(torch.get_num_threads())

    settings = EngineSettings(dtype="auto", threads="auto", device="cpu", choices=tmp_path / "choices.json")
    torch.set_num_threads(2)
    try:
        monkeypatch.setattr(autotune, "seconds_of", seconds_of)
        first = Engine.load(str(tiny_model), settings)
        kept_choices = orjson.loads((tmp_path / "choices.json").read_bytes())
        assert list(kept_choices.values()) == [{"dtype": "float32", "threads": 1}]
        other = {key: {"dtype": "bfloat16", "threads": 2} for key in kept_choices}
        (tmp_path / "choices.json").write_bytes(orjson.dumps(other))
        monkeypatch.delattr(autotune, "seconds_of")
        torch.set_num_threads(2)
        second = Engine.load(str(tiny_model), settings)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert next(first._runner.model.parameters()).dtype == torch.float32
    assert next(second._runner.model.parameters()).dtype == torch.bfloat16


def test_a_processor_without_a_name_is_called_what_the_platform_says(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name : Fast One\nmodel name : Fast One\n")
    assert processor_name(tmp_path / "cpuinfo") == "Fast One"
    assert processor_name(tmp_path / "none") == processor_name(tmp_path)
