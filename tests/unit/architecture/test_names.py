"""A class's name means one thing in the whole tree."""

import ast
from collections import Counter

from tests.harness.imports import sources

# Each still names two things. No name is added.
TWICE = {
    "Completion",
    "Feature",
    "Finding",
    "Kernels",
    "Model",
    "Opening",
    "Part",
    "Place",
    "Plan",
    "Probe",
    "Reading",
    "Stage",
}


def test_no_name_of_a_public_class_is_used_twice() -> None:
    named = Counter(
        node.name
        for path in sources()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in named.items() if times > 1} <= TWICE
