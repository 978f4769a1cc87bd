"""Keys and their versions: as they are stored, and as they are shown."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ttmark.shared.keys.held_keys import KeyState
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.names import Name


class VersionInfo(BaseModel):
    """A version without its secret.

    Attributes:
        exported_at: when its PRF keys last left the store for another program, or came from one; None: never.
        revealed_at: when an earlier release made them public; None: none did.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(ge=1)
    state: KeyState
    created_at: datetime
    changed_at: datetime
    exported_at: datetime | None = None
    revealed_at: datetime | None = None


class VersionRecord(VersionInfo):
    """A version with its secret as sealed at `epoch` of the key's record (base64)."""

    epoch: int = Field(ge=1)
    sealed_secret: str = Field(repr=False)

    def shown(self) -> VersionInfo:
        return VersionInfo.model_validate(self.model_dump(include=set(VersionInfo.model_fields)))


class _Key(BaseModel):
    """What a key's record holds and shows alike.

    Attributes:
        profile: a foreign one of a key of another system, which marks no text here.
        rotate_after_tokens: of the primary version, after which the next one takes its place; None: no limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key_id: Name
    tenant: Name
    profile: ForeignProfile | Profile = Field(union_mode="left_to_right")
    created_at: datetime
    rotate_after_tokens: int | None = Field(default=None, ge=1)


class KeyRecord(_Key):
    versions: tuple[VersionRecord, ...]

    @model_validator(mode="after")
    def _foreign_keys_never_mark(self) -> Self:
        marking = [one for one in self.versions if one.state in (KeyState.PENDING, KeyState.PRIMARY)]
        if isinstance(self.profile, ForeignProfile) and (marking or self.rotate_after_tokens):
            raise ValueError("a key of another system has no version to generate with")
        return self


class KeyInfo(_Key):
    """What is shown of a key: everything but its secrets. `epoch` counts the changes."""

    epoch: int
    versions: tuple[VersionInfo, ...]

    @property
    def primary(self) -> VersionInfo | None:
        return next((version for version in self.versions if version.state is KeyState.PRIMARY), None)
