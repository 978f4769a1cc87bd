"""A class's name means one thing in the whole tree."""

import ast
from collections import Counter

from tests.harness.imports import sources

# Names that we promise: of the library and of a list of models; of how likely a text is, inside and as JSON.
TWICE = {"Model", "Reading"}


def test_no_name_of_a_public_class_is_used_twice() -> None:
    named = Counter(
        node.name
        for path in sources()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in named.items() if times > 1} == TWICE
