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

    def under(self, request: BaseModel) -> dict[str, Any]:
        """The five values of a request, with the default where it has null; a `top_k` of -1 becomes 0."""
        named = {name: getattr(request, name) for name in type(self).model_fields}
        values = self.model_dump() | {name: value for name, value in named.items() if value is not None}
        return values | {"top_k": max(0, values["top_k"])}
