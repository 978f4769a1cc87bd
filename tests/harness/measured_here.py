"""`ttmark.load` without a second process, for tests of what it loads; `speed_trial.py` has its own tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ttmark.gen_service.engine.model import loading
from ttmark.gen_service.engine.model.transformers_model import try_each
from ttmark.library import model


@contextmanager
def measured_here(folder: Path) -> Iterator[None]:
    """Models are measured in this process, and `folder` keeps what was chosen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_tried_apart", try_each)
        patch.setattr(model, "choices_file", lambda _: folder / "choices.json")
        yield
