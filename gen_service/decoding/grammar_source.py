"""What a grammar is compiled from: text, so that another process can compile it again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class GrammarSource:
    """A JSON schema, a regular expression, a grammar of our own in llguidance's dialect of Lark, or one of a
    stranger, in that or in GBNF.

    Attributes:
        free: whether a text may be free until it begins something that the grammar knows.
    """

    kind: Literal["json_schema", "regex", "lark", "grammar"]
    text: str
    free: bool = False

    @classmethod
    def of_schema(cls, schema: Mapping[str, Any]) -> "GrammarSource":
        """The JSON that is valid against a schema."""
        return cls("json_schema", json.dumps(schema, ensure_ascii=False))

    @classmethod
    def of_choice(cls, texts: Sequence[str]) -> "GrammarSource":
        """One of some texts."""
        quoted = (json.dumps(text, ensure_ascii=False) for text in dict.fromkeys(texts))
        return cls("lark", f"start: {' | '.join(quoted)}\n")
