"""Rotation by volume: what has marked enough is followed by the next version, in the same two phases."""

from collections.abc import Mapping
from dataclasses import dataclass

from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.records import KeyInfo, KeyState
from ttmark.shared.keys.volume import volume_name
from ttmark.shared.vault.key_store_errors import InvalidTransition, ReplicasBehind


@dataclass(frozen=True, slots=True)
class Rotation:
    """What was done about a key whose primary version has reached its limit.

    Attributes:
        version: the one that follows.
        marked_tokens: of the version that was primary.
        waits_for: why the new version is not primary yet; None: it is.
    """

    key_id: str
    version: int
    marked_tokens: int
    waits_for: str | None


async def rotate_due(ring: KeyRing, volumes: Mapping[str, int], key_id: str | None = None) -> list[Rotation]:
    """Rotates each key, or the given one, whose primary version has reached its limit.

    A version is added where none is pending, and promoted as soon as every replica knows it; until then
    the next call goes on. Several callers at once rotate once.

    Args:
        volumes: marked tokens by `volume_name`.

    Raises:
        StoreUnavailable, RecordTampered, RecordRolledBack, UnknownKek.
    """
    chosen = [key for key in await ring.list() if key_id in (None, key.key_id)]
    rotations = [await _rotate(ring, key, volumes) for key in chosen]
    return [rotation for rotation in rotations if rotation is not None]


async def _rotate(ring: KeyRing, key: KeyInfo, volumes: Mapping[str, int]) -> Rotation | None:
    primary, limit = key.primary, key.rotate_after_tokens
    if primary is None or limit is None:
        return None
    marked = volumes.get(volume_name(key.key_id, primary.version), 0)
    if marked < limit:
        return None
    waits_for, following = None, key.versions[-1]
    try:
        if following.state is not KeyState.PENDING:
            following = (await ring.rotate(key.key_id, primary=primary.version)).versions[-1]
        await ring.promote(key.key_id, following.version)
    except ReplicasBehind as error:
        waits_for = str(error)
    except InvalidTransition:  # somebody else changes the key at this moment
        return None
    return Rotation(key.key_id, following.version, marked, waits_for)
