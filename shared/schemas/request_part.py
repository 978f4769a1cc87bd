"""What the objects in the body of a generation request have in common."""

from pydantic import BaseModel, ConfigDict


class RequestPart(BaseModel):
    """No string stands for a number; fields that are not known are left aside."""

    model_config = ConfigDict(extra="ignore", strict=True)
