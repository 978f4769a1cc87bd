"""Settings of evidence that is spent."""

from pydantic import Field

from ttmark.services.settings.base import Settings
from ttmark.shared.limits.counting_filter import MOST_ANSWERS


class SpentSettings(Settings):
    """How much callers who see verdicts alone may learn."""

    answers_per_passage: int = Field(
        default=12,
        ge=0,
        le=MOST_ANSWERS,
        description="Answers about the same evidence that a tenant's tokens without detect:evidence "
        "get in half a day; 0: any.",
    )
    chance_findings: float = Field(
        default=0.1,
        ge=0,
        le=1e6,
        description="False findings to be expected of a token without detect:evidence in half a day: 0.1 "
        "are 10 documents at 1e-2, 10,000 at 1e-5; 0: any.",
    )
