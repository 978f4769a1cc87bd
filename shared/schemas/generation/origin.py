"""How a text is supposed to have been made: what it continues, and its sampling."""

from typing import Annotated, Any

from pydantic import Field, JsonValue

from ttmark.shared.schemas.fields import InSlices, NonEmptyText, StrictModel, TokenIds, WholeNumber, says
from ttmark.shared.schemas.generation.chat import OF_THE_TEMPLATE, ChatMessage, TemplateVariables

TextOrIds = Annotated[NonEmptyText | TokenIds, says("must be a text or a list of token ids, not empty")]
NOT_BOTH = "give `prompt` or `messages`, not both"
PROMPT_OR_MESSAGES: list[JsonValue] = [
    {"properties": {name: {"type": "null"}}} for name in ("prompt", "messages")
]


class Origin(StrictModel):
    """What a text continues or answers, and the sampling at which it is supposed to have been made."""

    prompt: TextOrIds | None = Field(default=None, description="What the text continues, where it is known.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, fail_fast=True), InSlices] | None = Field(
        default=None, description="The conversation that the text answers."
    )
    chat_template_kwargs: TemplateVariables | None = Field(default=None, description=OF_THE_TEMPLATE)
    temperature: float | None = Field(
        default=None,
        gt=0,
        le=2,
        description="Sampling of the text; wrong values cost power, not exactness. Where one of these fields "
        "or of those above is given, the others of the sampling are the model's own.",
    )
    top_p: float | None = Field(default=None, gt=0, le=1, description="1: off.")
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1), WholeNumber] | None = Field(
        default=None, description="0 and -1: off."
    )
    min_p: float | None = Field(default=None, ge=0, le=1, description="0: off.")
    repetition_penalty: float | None = Field(default=None, ge=1, le=2, description="1: off.")

    @property
    def has_origin(self) -> bool:
        """Whether anything is said of how the text was made."""
        return any(getattr(self, name) is not None for name in Origin.model_fields)

    @property
    def origin(self) -> dict[str, Any]:
        """What is said of it, as JSON values; empty: nothing."""
        return self.model_dump(mode="json", include=set(Origin.model_fields), exclude_none=True)


ORIGIN_OR_MORE: list[JsonValue] = [
    {"properties": {name: {"type": "null"} for name in Origin.model_fields}},
    {
        "properties": {
            "conversation": {"const": False},
            "case": {"const": False},
            "reader": {"enum": ["auto", "always"]},
        }
    },
]
