"""Keys and their versions as they are stored and as they are shown."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from shared.keys.errors import InvalidName
from shared.schemas.profile import Profile

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]


class KeyState(StrEnum):
    """pending -> primary -> active -> retired; any of them may become disabled."""

    PENDING = "pending"
    PRIMARY = "primary"
    ACTIVE = "active"
    RETIRED = "retired"
    DISABLED = "disabled"

    @property
    def detectable(self) -> bool:
        """Whether texts made with such a version are looked for; a pending one may be primary elsewhere."""
        return self in (KeyState.PENDING, KeyState.PRIMARY, KeyState.ACTIVE)


class VersionInfo(BaseModel):
    """A version without its secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(ge=1)
    state: KeyState
    created_at: datetime
    changed_at: datetime


class VersionRecord(VersionInfo):
    """A version with its secret as sealed at `epoch` of the key's record (base64)."""

    epoch: int = Field(ge=1)
    sealed_secret: str = Field(repr=False)


class KeyRecord(BaseModel):
    """The body of a key's record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key_id: Name
    tenant: Name
    profile: Profile
    created_at: datetime
    versions: tuple[VersionRecord, ...]


class KeyInfo(BaseModel):
    """What is shown of a key: everything but its secrets. `epoch` counts the changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key_id: str
    tenant: str
    profile: Profile
    created_at: datetime
    epoch: int
    versions: tuple[VersionInfo, ...]

    @property
    def primary(self) -> VersionInfo | None:
        """The version that new texts are made with."""
        return next((version for version in self.versions if version.state is KeyState.PRIMARY), None)


_NAME: TypeAdapter[str] = TypeAdapter(Name)


def check_name(what: str, name: str) -> str:
    """The name, if it is 1 to 63 of a-z 0-9 . _ - and begins with a letter or digit.

    Raises:
        InvalidName: it is not.
    """
    try:
        return _NAME.validate_python(name)
    except ValidationError as error:
        raise InvalidName(
            f"{what} {name!r}: use 1 to 63 of a-z 0-9 . _ - and begin with a letter or digit"
        ) from error
