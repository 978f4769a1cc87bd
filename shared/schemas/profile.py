"""The watermark profile: all that the detection service has to know about how a text was made."""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ttmark.shared.watermark.schemes.watermark import Watermark

SPEC_VERSION: Final = 1
MAX_POOL: Final = 4096

Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Profile(BaseModel):
    """Scheme, block size, context width, parameters, tokenizer and pool of keys; see `docs/spec.md`.

    Parameters that are left out take the scheme's defaults, so two profiles that mean the same
    compare and serialise the same.

    Attributes:
        pool: keys that each version has; a completion is marked with one of them.
        payloads: whether the request chooses which; otherwise the service draws it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec_version: Literal[1] = SPEC_VERSION
    scheme: str
    block_size: int = Field(default=2, ge=1, le=3)
    context_width: int = Field(ge=1, le=64)
    parameters: Mapping[str, int | float | bool]
    tokenizer_fingerprint: Fingerprint
    pool: int = Field(default=1, ge=1, le=MAX_POOL)
    payloads: bool = False

    @model_validator(mode="before")
    @classmethod
    def _resolve_defaults(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("scheme"), str):
            return data
        block_size = data.get("block_size", 2)
        if not isinstance(block_size, int):
            return data
        watermark = Watermark(
            data["scheme"], block_size, data.get("context_width"), data.get("parameters") or None
        )
        return {**data, "context_width": watermark.context_width, "parameters": dict(watermark.parameters)}

    @model_validator(mode="after")
    def _several_payloads(self) -> Self:
        if self.payloads and self.pool == 1:
            raise ValueError("payloads need a pool of several keys")
        return self

    def watermark(self) -> Watermark:
        """The watermark that this profile describes; built once, since exact nulls can be costly to make."""
        return self._watermark

    @cached_property
    def _watermark(self) -> Watermark:
        return Watermark(self.scheme, self.block_size, self.context_width, self.parameters)

    def canonical(self) -> bytes:
        """Canonical JSON (sorted keys, no white space): what the profile's PRF keys are derived from."""
        return orjson.dumps(self.stored(), option=orjson.OPT_SORT_KEYS)

    def stored(self) -> dict[str, object]:
        """As JSON values; a pool of one key, and payloads that there are none of, are left out, as programs
        before them wrote and read it."""
        unset = {"pool"} if self.pool == 1 else set()
        return self.model_dump(mode="json", exclude=unset if self.payloads else unset | {"payloads"})

    @cached_property
    def profile_id(self) -> str:
        """Readable name with the first 32 bits of the SHA-256 of the canonical form."""
        digest = hashlib.sha256(self.canonical()).hexdigest()[:8]
        return f"{self.scheme}-r{self.block_size}-{digest}"


class Purpose(StrEnum):
    """What the texts of a key are for."""

    ANSWERS = "answers"
    EDITED_TEXT = "edited-text"


PRESETS: Mapping[Purpose, Mapping[str, Any]] = {
    Purpose.ANSWERS: {"scheme": "gumbel", "context_width": 2, "pool": 4},
    Purpose.EDITED_TEXT: {"scheme": "gumbel", "context_width": 2},
}
"""Fields of a profile; what is left out has the scheme's default."""


OWN = ("scheme", "parameters")
"""A key that is made with one of them starts from no preset."""


def profile_fields(purpose: Purpose | None = None, **given: Any) -> dict[str, Any]:
    """The fields of a profile for a purpose, by default for answers.

    `block_size`, `context_width` and `pool` replace the preset's. With a scheme or parameters the profile has
    the defaults of the scheme, which is Gumbel if none is given, and one key. A field that is None or empty
    is not given.

    Raises:
        ValueError: a purpose is given beside one of them.
    """
    fields = {name: value for name, value in given.items() if value not in (None, {})}
    if fields.keys().isdisjoint(OWN):
        return {**PRESETS[purpose or Purpose.ANSWERS], **fields}
    if purpose is not None:
        raise ValueError("a purpose chooses scheme and parameters: give it without them or leave it out")
    return {"scheme": "gumbel", **fields}
