"""`POST /v1/extract`: a file, and its text."""

from pydantic import Field

from ttmark.shared.schemas.fields import AnswerModel, left_out

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
