"""The answers of the health routes."""

from typing import Literal

from pydantic import BaseModel, Field

from ttmark.shared.schemas.fields import is_none


class Liveness(BaseModel):
    """Whether the process works, or has to be restarted."""

    status: Literal["ok", "dead"]


class ReadinessReport(BaseModel):
    """Whether requests are accepted, check by check."""

    status: Literal["ready", "not_ready"]
    checks: dict[str, bool] = Field(description="Each condition of readiness and whether it holds.")
    reasons: dict[str, str] | None = Field(
        default=None,
        exclude_if=is_none,
        description="Why conditions do not hold, and what to do, of those that can say it.",
    )
