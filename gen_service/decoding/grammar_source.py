"""What a grammar is compiled from: text, so that another process can compile it again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class GrammarSource:
    """A JSON schema, or a grammar in llguidance's dialect of Lark.

    Attributes:
        free: whether a text may be free until it begins something that the grammar knows.
    """

    kind: Literal["json_schema", "lark"]
    text: str
    free: bool = False

    @classmethod
    def of_schema(cls, schema: Mapping[str, Any]) -> "GrammarSource":
        """The JSON that is valid against a schema."""
        return cls("json_schema", json.dumps(schema, ensure_ascii=False))
