"""A model that is not there: the answer says what is."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.shared.http.service_errors import ModelNotFound


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (["smollm2"], "this service has 'smollm2' alone"),
        (["Demo", "smollm2"], "did you mean 'Demo'"),
        (["a", "b"], "GET /v1/models"),
    ],
)
def test_an_unknown_model_is_told_what_there_is(models: list[str], words: str) -> None:
    held = SimpleNamespace(models=dict.fromkeys(models))
    with pytest.raises(ModelNotFound, match=words):
        GenerationBackend.model(cast("Any", held), "demo")
