"""Settings of answers in a form."""

from typing import Literal

from pydantic import Field

from ttmark.services.settings.base import Settings


class ReasoningSettings(Settings):
    reasoning: Literal["auto", "think", "none"] = Field(
        default="auto",
        description="Tags in which models reason: `auto`: those of the chat template; `think`: "
        "`<think>` and `</think>`; `none`: such tags are text.",
    )
