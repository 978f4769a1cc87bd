"""Keys and their versions, unwrapped, in memory only: ready for use."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.confidential import Confidential
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
        return tuple(version for version in self.versions if version.state.detectable)


HeldKey = UnlockedKey | ForeignKey


def own_keys(keys: Iterable[HeldKey]) -> list[UnlockedKey]:
    return [key for key in keys if isinstance(key, UnlockedKey)]


def foreign_keys(keys: Iterable[HeldKey]) -> list[ForeignKey]:
    return [key for key in keys if isinstance(key, ForeignKey)]
