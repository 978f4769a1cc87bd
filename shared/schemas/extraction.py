"""`POST /v1/extract`: a file, and its text."""

import base64
import binascii
from typing import Annotated

from pydantic import BeforeValidator, Field

from ttmark.shared.schemas.bodies import AnswerModel, StrictModel


def _strict_base64(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("must be a string in base64")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError("must be base64") from None


class ExtractionRequest(StrictModel):
    """A file whose text is wanted."""

    filename: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Its ending says what the file is: txt, md, html, docx or pdf."
    )
    content: Annotated[bytes, BeforeValidator(_strict_base64)] = Field(
        description="The file in base64.",
        json_schema_extra={"type": "string", "format": "byte", "contentEncoding": "base64"},
    )


class ExtractionResponse(AnswerModel):
    """The text of a file."""

    text: str
    encoding: str | None = Field(
        default=None,
        description="Of the file's characters; left out for docx and pdf, which say it themselves.",
    )
