"""What an answer is held to beside JSON, as vLLM has it."""

from typing import Annotated, Any

from pydantic import Field

from ttmark.shared.schemas.fields import Ignored, NonEmptyText, NotTaken, OnlyFalse, OnlyTrue
from ttmark.shared.schemas.request_part import RequestPart

MAX_CHOICES = 1024
Schema = Annotated[
    str | dict[str, Any], Field(description="JSON that is valid against a schema; the schema may be a text.")
]
Regex = Annotated[NonEmptyText, Field(description="The whole text matches a regular expression.")]
Choice = Annotated[
    list[NonEmptyText],
    Field(min_length=1, max_length=MAX_CHOICES, fail_fast=True, description="One of these texts."),
]
LarkGrammar = Annotated[
    NonEmptyText,
    Field(description="A text of a grammar, in the dialect of Lark that llguidance reads, or in GBNF."),
]


class StructuredOutputs(RequestPart):
    """What the text is held to: exactly one of `json`, `regex`, `choice`, `grammar` and `json_object`."""

    json_schema: Schema | None = Field(default=None, alias="json")
    regex: Regex | None = None
    choice: Choice | None = None
    grammar: LarkGrammar | None = None
    json_object: OnlyTrue = None
    structural_tag: NotTaken = None
    whitespace_pattern: NotTaken = None
    disable_additional_properties: OnlyFalse = None
    disable_any_whitespace: Ignored = None
    disable_fallback: Ignored = None
