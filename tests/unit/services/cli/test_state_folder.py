"""What is known without settings: the demo model, and what the state folder holds."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models
from typer.testing import CliRunner

from ttmark.evaluation.options import chosen_model, model_path, run_folder
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.cli.main import app
from ttmark.services.model_folder import default_model, model_id
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.state_folder import known_tokenizers, model_of, remember_tokenizer
from ttmark.shared.tokenization import TextTokenizer


def test_a_tokenizer_that_was_served_is_known_afterwards(tmp_path: Path) -> None:
    tokenizer = TextTokenizer(Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    assert known_tokenizers(tmp_path) == [DEMO_MODEL_PATH]
    for _ in range(2):
        remember_tokenizer(tmp_path, "owner/my model", tokenizer)
    (folder,) = known_tokenizers(tmp_path)[1:]
    assert folder.name == f"owner-my-model-{tokenizer.fingerprint[:8]}"
    assert TextTokenizer.load(folder).fingerprint == tokenizer.fingerprint
    assert DetectionSettings(state=tmp_path).tokenizer_folders() == [DEMO_MODEL_PATH, folder]
    (tmp_path / "mine").symlink_to(folder)
    for place, name in (
        (folder, "owner-my-model"),
        (DEMO_MODEL_PATH, "demo"),
        (tmp_path / "mine", "owner-my-model"),
        (tmp_path / "another-one", "another-one"),
    ):
        assert model_of(str(place), tokenizer.fingerprint) == name


def test_named_tokenizers_are_the_only_ones(tmp_path: Path) -> None:
    (tmp_path / "models/x").mkdir(parents=True)
    (tmp_path / "models/x/tokenizer.json").write_text("{}")
    named = tmp_path / "named"
    named.mkdir()
    (named / "tokenizer.json").write_text("{}")
    settings = DetectionSettings(state=tmp_path, tokenizers=(named,))
    assert settings.tokenizer_folders() == [named]


def test_the_demo_model_is_the_default_where_smollm2_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TTMARK_MODEL", raising=False)
    assert GenerationSettings().model == ()
    assert default_model(tmp_path) == "demo"
    assert chosen_model(None) == "demo"
    assert model_path("demo") == str(DEMO_MODEL_PATH)
    with pytest.raises(ValueError, match="ttmark models get smollm2"):
        model_path("smollm2")


def test_smollm2_is_the_default_where_it_is(smollm2_state, tmp_path, monkeypatch):
    (tmp_path / ".ttmark").symlink_to(smollm2_state)
    monkeypatch.chdir(tmp_path)
    assert default_model(Path(".ttmark")) == "smollm2"
    assert chosen_model(None) == "smollm2"
    assert chosen_model("demo") == "demo"
    assert Path(model_path("smollm2")).samefile(smollm2_state / "models/smollm2")


@pytest.mark.parametrize(
    ("model", "folder"),
    [("demo", "demo"), ("Qwen/Qwen3-0.6B", "Qwen-Qwen3-0.6B"), ("../models/mine", "models-mine")],
)
def test_the_runs_of_different_models_lie_in_different_folders(model: str, folder: str) -> None:
    assert run_folder(model) == Path(".ttmark/evaluation") / folder


def test_every_service_gives_a_model_the_same_name_whether_it_sees_the_folder_or_not(tmp_path, monkeypatch):
    (tmp_path / "my-model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model_id(str(tmp_path / "my-model")) == model_id("my-model") == "my-model"
    assert model_id("/nowhere/here/my-model") == "my-model"
    assert model_id("owner/my-model") == "owner/my-model"


@pytest.mark.parametrize(
    ("arguments", "fetched"),
    [
        (["eval", "results", "--model", "smollm2", "--label", "No"], True),
        (["bench", "generate", "--model=smollm2", "--dtype", "x"], True),
        (["eval", "results", "--model", "demo", "--label", "No"], False),
        (["eval", "results", "--model", "smollm2", "--help"], False),
    ],
)
def test_smollm2_is_fetched_where_an_experiment_names_it(tmp_path, monkeypatch, arguments, fetched) -> None:
    asked: list[Path] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ttmark.services.cli.models.get_smollm2", lambda state, _: asked.append(state))
    CliRunner().invoke(app, arguments)
    assert asked == [Path(".ttmark")] * fetched
