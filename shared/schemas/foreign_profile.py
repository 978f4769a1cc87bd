"""The profile of another system's key."""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from ttmark.shared.schemas.profile import Fingerprint
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES


class ForeignProfile(BaseModel):
    """A foreign scheme with its parameters, by the names that the original gives them; no secret.

    Attributes:
        foreign: tells it from a profile of ours wherever it is written.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    foreign: Literal[True] = True
    scheme: str
    parameters: Mapping[str, int | float | str]
    tokenizer_fingerprint: Fingerprint

    @field_validator("scheme")
    @classmethod
    def _known(cls, scheme: str) -> str:
        if scheme not in FOREIGN_SCHEMES:
            raise ValueError(f"a foreign scheme is one of {', '.join(FOREIGN_SCHEMES)}, not {scheme}")
        return scheme

    @model_validator(mode="after")
    def _all_parameters(self) -> Self:
        if self.parameters.keys() != FOREIGN_SCHEMES[self.scheme].defaults.keys():
            raise ValueError(f"these are not the parameters of {self.scheme}")
        return self

    @property
    def title(self) -> str:
        """The scheme in words."""
        return FOREIGN_SCHEMES[self.scheme].title

    def canonical(self) -> bytes:
        """Canonical JSON (sorted keys, no white space)."""
        return orjson.dumps(self.stored(), option=orjson.OPT_SORT_KEYS)

    def stored(self) -> dict[str, object]:
        """As JSON values."""
        return self.model_dump(mode="json")

    @cached_property
    def profile_id(self) -> str:
        """Readable name with the first 32 bits of the SHA-256 of the canonical form."""
        return f"{self.scheme}-{hashlib.sha256(self.canonical()).hexdigest()[:8]}"
