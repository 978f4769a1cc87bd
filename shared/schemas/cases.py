"""`/v1/cases`: a signed case as a page, and cases that the service keeps."""

from pydantic import Field

from ttmark.shared.schemas.fields import AnswerModel, StrictModel


class CasePageRequest(StrictModel):
    """A case that this service signed."""

    case: str = Field(min_length=1, description="The case as the result had it.")
    text: str | None = Field(
        default=None, description="The text that was checked, to be shown with its passages marked."
    )


class CasePage(AnswerModel):
    """The page."""

    page: str = Field(description="A html file that `ttmark case verify` reads, to be saved as it is.")


class CaseStoreRequest(StrictModel):
    """A case that this service signed, to be kept for a time."""

    case: str = Field(
        min_length=1,
        description="The case as the result had it, json alone: a page may hold a text.",
        json_schema_extra={"pattern": r"^\{"},
    )


class StoredCase(AnswerModel):
    """A case that is kept. Times are Unix times in seconds."""

    id: str = Field(description="128 random bits in hexadecimal.")
    stored_at: float
    expires_at: float = Field(description="When the case is forgotten.")


class CaseText(StoredCase):
    """The same with the case itself."""

    case: str = Field(description="The case as it was stored, to be saved as it is.")
