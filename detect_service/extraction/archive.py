"""What a zip archive declares, before anything of it is unpacked."""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from ttmark.detect_service.extraction.unreadable_file import LimitExceeded, UnreadableFile

LARGEST_UNPACKED = 64 * 2**20
MOST_MEMBERS = 4_000
_ENCRYPTED = 0x1


def check_archive(content: bytes) -> None:
    """Accepts an archive that is safe to unpack: what is read of a member never exceeds its declared size.

    Raises:
        LimitExceeded: more members, or larger when unpacked, than the limits.
        UnreadableFile: protected by a password, or packed in a way that documents do not use.
        zipfile.BadZipFile: not an archive.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise LimitExceeded(f"The document holds more files than the limit of {MOST_MEMBERS}.", "unpacked")
    # Their sum, so that members that overlap count as often as they are listed.
    if sum(member.file_size for member in members) > LARGEST_UNPACKED:
        limit = LARGEST_UNPACKED // 2**20
        raise LimitExceeded(f"The document is too large when unpacked: the limit is {limit} MiB.", "unpacked")
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise UnreadableFile("The document is protected by a password. Send it without.", "protected")
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise UnreadableFile("The file is packed in a way that cannot be read.", "damaged")


@contextmanager
def open_archive(content: bytes, wrong: UnreadableFile) -> Iterator[zipfile.ZipFile]:
    """An archive that `check_archive` accepts.

    Raises:
        UnreadableFile: as `check_archive`; `wrong` where it is damaged, or what is asked of it is not there.
        LimitExceeded: as `check_archive`.
    """
    try:
        check_archive(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield archive
    except (UnreadableFile, MemoryError):
        raise
    except Exception:  # the library raises whatever a damaged directory leads to
        raise wrong from None
