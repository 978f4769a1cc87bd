"""What the bodies of the detection service have in common."""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A body that is what its schema says: no number stands for a truth value, no string for a number.

    An unknown field is an error: a misspelt option must not be ignored silently.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AnswerModel(BaseModel):
    """A part of an answer: a later version may add fields, which a client of today leaves out."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)
