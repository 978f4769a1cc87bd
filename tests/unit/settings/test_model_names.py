"""The name under which a model is served, from what a setting calls it."""

from pathlib import Path

import pytest

from ttmark.services.model_folder import model_id


def test_every_service_gives_a_model_the_same_name_whether_it_sees_the_folder_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my-model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model_id(str(tmp_path / "my-model")) == model_id("my-model") == "my-model"
    assert model_id("/nowhere/here/my-model") == "my-model"
    assert model_id("owner/my-model") == "owner/my-model"
