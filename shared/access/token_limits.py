"""How much an access token may be used in a minute."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Usage(StrEnum):
    """What is counted."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    DOCUMENTS = "documents"


class TokenLimits(BaseModel):
    """Limits for each minute and service; 0 is no limit, None leaves it to the service."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_per_minute: int | None = Field(default=None, ge=0)
    tokens_per_minute: int | None = Field(default=None, ge=0)
    documents_per_minute: int | None = Field(default=None, ge=0)

    def of(self, usage: Usage) -> int | None:
        """The limit on one sort of use."""
        match usage:
            case Usage.REQUESTS:
                return self.requests_per_minute
            case Usage.TOKENS:
                return self.tokens_per_minute
            case Usage.DOCUMENTS:
                return self.documents_per_minute
