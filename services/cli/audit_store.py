"""What the commands on the audit trail share: its folder, and checking it against the key store."""

from pathlib import Path

from ttmark.services.cli.key_store import KeyStore
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError
from ttmark.shared.audit.chain_check import Seam, Verification, verify_folder
from ttmark.shared.audit.segments import Segment, segments
from ttmark.shared.audit.trail import Heads
from ttmark.shared.vault.key_store_errors import KeyStoreError

_ATTEMPTS = 3


def trail_folder() -> Path:
    """Where the audit trail lies.

    Raises:
        StartupError: there is none.
    """
    folder = KeyStoreSettings().audit_folder
    if folder is None:
        raise StartupError("there is no audit trail: set TTMARK_AUDIT_FOLDER")
    return folder


def trail_segments() -> dict[str, list[Segment]]:
    """The segments in it, by chain; none where nobody wrote yet.

    Raises:
        StartupError: there is no trail, or it cannot be read.
    """
    folder = trail_folder()
    try:
        return segments(folder)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StartupError(f"cannot read the audit trail in {folder} ({error.strerror})") from error


async def verified(
    store: KeyStore, seam: Seam | None = None
) -> tuple[Verification, dict[str, KeyStoreError]]:
    """What is found in the folder, and what is wrong with heads in the store.

    What somebody removes while it is read looks like a beginning that was cut off: it is read again.

    Raises:
        KeyStoreError: the store is away. StartupError: the folder cannot be read.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        # The heads first: what is written meanwhile comes after them.
        anchors, refused = await Heads(store.records, store.kek).read_all()
        try:
            result = verify_folder(trail_segments(), anchors, seam)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StartupError(f"cannot read the audit trail ({error.strerror})") from error
        if not result.problems or attempt == _ATTEMPTS:
            return result, refused
    raise StartupError("the audit trail changes while it is read: try again")
