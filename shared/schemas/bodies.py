"""What the bodies of requests and answers have in common."""

from pydantic import BaseModel, ConfigDict, Field


class StrictModel(BaseModel):
    """A body that is what its schema says: no number stands for a truth value, no string for a number.

    An unknown field is an error: a misspelt option must not be ignored silently.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AnswerModel(BaseModel):
    """A part of an answer: a later version may add fields, which a client of today leaves out."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class RequestPart(BaseModel):
    """No string stands for a number; a field that is not known is an error, unless it is taken out first."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ClosedPart(RequestPart):
    """A part of our own, out of which nothing is taken: a misspelt field must not be taken for silence."""


class ErrorBody(BaseModel):
    """What went wrong, in OpenAI's terms."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorEnvelope(BaseModel):
    """The error answer of every generation route."""

    error: ErrorBody


class FieldProblem(BaseModel):
    """One field at fault."""

    field: str = Field(description="Dotted path in the request body; empty for the body itself.")
    message: str


class ProblemDocument(BaseModel):
    """The error answer of every detection route (RFC 9457, application/problem+json)."""

    type: str = Field(description="URI that names the kind of error.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="URI that names this occurrence; ends with the request id.")
    code: str
    param: str | None = None
    errors: list[FieldProblem] | None = None
