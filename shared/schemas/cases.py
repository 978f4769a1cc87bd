"""`/v1/cases/page`: a signed case as a page."""

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
