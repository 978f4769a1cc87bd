"""Keys and their versions: as they are stored, as they are shown, and, in memory only, ready for use."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ttmark.shared.schemas.profile import ForeignProfile, Profile
from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.vault.names import Name
from ttmark.shared.watermark.foreign import ForeignMark


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
    """A version without its secret.

    Attributes:
        exported_at: when its PRF keys last left the store for another program; None: they never did.
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
        """Without the secret."""
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
    """The body of a key's record."""

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
        """The version that new texts are made with."""
        return next((version for version in self.versions if version.state is KeyState.PRIMARY), None)


class UnlockedVersion(Confidential):
    """A version with its 16-byte PRF keys for the key's profile, one for each number of the pool."""

    __slots__ = ("prf_keys", "state", "version")

    def __init__(self, version: int, state: KeyState, *prf_keys: bytes) -> None:
        self.version = version
        self.state = state
        self.prf_keys = prf_keys

    @property
    def prf_key(self) -> bytes:
        """The first of the pool: the only one, unless the profile has a pool of several."""
        return self.prf_keys[0]

    def __repr__(self) -> str:
        return f"<UnlockedVersion {self.version} {self.state}>"


@dataclass(frozen=True, slots=True)
class UnlockedKey:
    """All versions of a key, unwrapped. `epoch` counts the changes of its record."""

    key_id: str
    tenant: str
    profile: Profile
    epoch: int
    versions: tuple[UnlockedVersion, ...]
    rotate_after_tokens: int | None = None

    @property
    def primary(self) -> UnlockedVersion | None:
        """The version that new texts are made with; None when it was disabled."""
        return next((version for version in self.versions if version.state is KeyState.PRIMARY), None)

    @property
    def detectable(self) -> tuple[UnlockedVersion, ...]:
        """The versions whose texts are looked for, newest first."""
        return tuple(version for version in reversed(self.versions) if version.state.detectable)


class ForeignVersion(Confidential):
    """The one version of a foreign key, with the mark that it looks for."""

    __slots__ = ("mark", "state", "version")

    def __init__(self, version: int, state: KeyState, mark: ForeignMark) -> None:
        self.version = version
        self.state = state
        self.mark = mark

    def __repr__(self) -> str:
        return f"<ForeignVersion {self.version} {self.state}>"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A key of another system, unwrapped: texts are looked for with it, none are made."""

    key_id: str
    tenant: str
    profile: ForeignProfile
    epoch: int
    versions: tuple[ForeignVersion, ...]

    @property
    def detectable(self) -> tuple[ForeignVersion, ...]:
        """The versions whose texts are looked for."""
        return tuple(version for version in self.versions if version.state.detectable)


HeldKey = UnlockedKey | ForeignKey


def own_keys(keys: Iterable[HeldKey]) -> list[UnlockedKey]:
    return [key for key in keys if isinstance(key, UnlockedKey)]


def foreign_keys(keys: Iterable[HeldKey]) -> list[ForeignKey]:
    return [key for key in keys if isinstance(key, ForeignKey)]
