"""The two shapes of an error body."""

from pydantic import BaseModel, Field


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
