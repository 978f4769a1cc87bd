"""What holds where a request names no sampling."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ttmark.shared.schemas.fields import WholeNumber


class SamplingDefaults(BaseModel):
    """A model's sampling where a request does not name it, field by field; without arguments OpenAI's."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    temperature: float = Field(default=1.0, gt=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1, description="1: off.")
    top_k: Annotated[int, Field(ge=0, le=2**31 - 1), WholeNumber] = Field(default=0, description="0: off.")
    min_p: float = Field(default=0.0, ge=0, le=1, description="0: off.")
    repetition_penalty: float = Field(default=1.0, ge=1, le=2, description="1: off.")
    max_new_tokens: Annotated[int, Field(ge=1, le=2**31 - 1), WholeNumber] | None = Field(
        default=None,
        description="Tokens of an answer in a chat or response that names no limit. null: what the context "
        "leaves.",
    )

    def under(self, request: BaseModel) -> dict[str, Any]:
        """The five values of a request, with the default where it has null; a `top_k` of -1 becomes 0."""
        values = self.model_dump(exclude={"max_new_tokens"})
        named = {name: value for name in values if (value := getattr(request, name)) is not None}
        values |= named
        return values | {"top_k": max(0, values["top_k"])}

    def answer_tokens(self, room: int) -> int:
        """Tokens that an answer may have where its request names no limit and the context leaves `room`."""
        return min(room, self.max_new_tokens or room)
