"""`POST /v1/extract`: a file, and its text."""

import binascii
from typing import Annotated

from pydantic import BeforeValidator, Field

from ttmark.shared.schemas.fields import AnswerModel, StrictModel, left_out

PICTURES = ("png", "jpg", "jpeg", "webp", "tif", "tiff")
ENDINGS = (
    "txt",
    "text",
    "md",
    "markdown",
    "html",
    "htm",
    "docx",
    "odt",
    "rtf",
    "pdf",
    "epub",
    "eml",
    "mbox",
    "csv",
    *PICTURES,
)
FILE_KINDS = "txt, md, html, docx, odt, rtf, pdf, epub, eml, mbox, csv, png, jpeg, webp or tiff"
"""For people."""
_ANY_CASE = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in ending) for ending in ENDINGS)
_FILENAME = rf"[^/]\.({_ANY_CASE})$"
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def _strict_base64(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("must be a string in base64")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise ValueError("must be base64") from None


class ExtractionRequest(StrictModel):
    """A file whose text is wanted."""

    filename: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description=f"Its ending says what the file is: {FILE_KINDS}.",
        json_schema_extra={"pattern": _FILENAME},
    )
    content: Annotated[bytes, BeforeValidator(_strict_base64)] = Field(
        description="The file in base64.",
        json_schema_extra={
            "type": "string",
            "format": "byte",
            "contentEncoding": "base64",
            "pattern": _BASE64,
        },
    )


class ExtractedPart(AnswerModel):
    """One of several texts of a file."""

    name: str = Field(
        description="Number, subject and sender of a mail, of a file its own, the number or id of a row."
    )
    text: str
    attachment: bool | None = left_out("True of a file that came with a mail.")
    problem: str | None = Field(default=None, description="Why there is no text, where there is none.")
    unread: str | None = Field(default=None, description="What of it could not be read, in words.")


class ExtractionResponse(AnswerModel):
    """The text of a file, or its texts."""

    text: str = Field(description="Empty where there are `parts`.")
    encoding: str | None = Field(
        default=None, description="Of the file's characters; left out where the format says it."
    )
    title: str | None = Field(default=None, description="Of a mail: its subject and who sent it.")
    unread: str | None = Field(default=None, description="What of the file could not be read, in words.")
    pages: list[int] | None = Field(
        default=None,
        description="Where each page of a PDF begins in the text, in characters; pages behind its end are "
        "left out.",
    )
    recognised: bool | None = Field(
        default=None, description="Whether a machine read pictures (OCR): letters may be wrong."
    )
    parts: list[ExtractedPart] | None = Field(
        default=None,
        description="A mail and files that came with it, mails of an mbox file, rows of a csv file.",
    )
