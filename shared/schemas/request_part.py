"""What the objects in the body of a generation request have in common."""

from pydantic import BaseModel, ConfigDict


class RequestPart(BaseModel):
    """No string stands for a number; a field that is not known is an error, unless it is taken out first."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ClosedPart(RequestPart):
    """A part of our own, out of which nothing is taken: a misspelt field must not be taken for silence."""
