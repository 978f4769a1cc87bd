"""The answers of the health routes."""

from typing import Literal

from pydantic import BaseModel, Field


class Liveness(BaseModel):
    """Whether the process works, or has to be restarted."""

    status: Literal["ok", "dead"]


class ReadinessReport(BaseModel):
    """Whether requests are accepted, check by check."""

    status: Literal["ready", "not_ready"]
    checks: dict[str, bool] = Field(description="Each condition of readiness and whether it holds.")
