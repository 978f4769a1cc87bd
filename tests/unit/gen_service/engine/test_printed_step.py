"""The step that the docs print is the step that runs."""

import inspect

from tests.harness.imports import ROOT
from ttmark.gen_service.engine.loop.step import Stepper

RECORD = ROOT / "docs/adr/0027-one-visible-step.md"


def test_the_step_in_the_docs_is_that_of_the_source() -> None:
    printed = RECORD.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert printed == inspect.getsource(Stepper.step)
