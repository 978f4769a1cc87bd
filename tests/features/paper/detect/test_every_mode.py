"""What tests of the core ask by a `mode`, of the default question, is asked of the paper's detectors, too."""

from importlib import import_module
from inspect import signature

for about in (
    *("bad_input", "detection_routes", "document_limits", "failing_documents"),
    *("pool", "readings", "voices", "work"),
):
    for name, test in vars(import_module(f"tests.unit.detect_service.test_{about}")).items():
        if name.startswith("test_") and {"mode", "asked"} & set(signature(test).parameters):
            globals()[name] = test
