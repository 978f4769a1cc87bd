"""Zip archives from strangers: what they declare, before anything is unpacked, and the XML inside of them."""

import io
import unicodedata
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from lxml import etree

from ttmark.detect_service.features.files.text.extraction import LimitExceeded, UnreadableFile

LARGEST_UNPACKED = 64 * 2**20
MOST_MEMBERS = 4_000
_ENCRYPTED = 0x1


def _check(members: list[zipfile.ZipInfo]) -> None:
    """Accepts what is safe to unpack: what is read of a member never exceeds its declared size.

    Raises:
        LimitExceeded: more members, or larger when unpacked, than the limits.
        UnreadableFile: protected by a password, or packed in a way that documents do not use.
    """
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


class Archive:
    """The files of an archive; names that differ in capitals or the form of their characters are the same."""

    def __init__(self, archive: zipfile.ZipFile, wrong: UnreadableFile) -> None:
        self._archive, self._wrong = archive, wrong
        names = archive.namelist()
        self._names = {_plain(name): name for name in names} | {name: name for name in names}

    def read(self, name: str) -> bytes | None:
        stored = self._names.get(name) or self._names.get(_plain(name))
        return None if stored is None else self._archive.read(stored)

    def xml(self, name: str) -> etree._Element | None:
        """The root of an XML part; raises as `_parsed`."""
        content = self.read(name)
        return None if content is None else _parsed(content, self._wrong)


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name.replace("\\", "/").lstrip("/")).lower()


@contextmanager
def open_archive(content: bytes, wrong: UnreadableFile) -> Iterator[Archive]:
    """An archive that is safe to unpack. Raises as `_check`, and `wrong` where something is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check(archive.infolist())
            yield Archive(archive, wrong)
    except (UnreadableFile, MemoryError):
        raise
    except Exception:  # the library raises whatever a damaged directory leads to
        raise wrong from None


# "Strict Open XML" has the same elements under other names.
_STRICT = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
_USUAL = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def _parsed(content: bytes, wrong: UnreadableFile) -> etree._Element:
    """The root of an XML part; entities stay unresolved, and nothing else is opened.

    Raises:
        UnreadableFile: `wrong`, where it is no XML.
        LimitExceeded: nested deeper than 256 levels, or a single text of more than 10 MB.
        MemoryError: the process may not have more memory.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(content.replace(_STRICT, _USUAL), parser)
    except etree.XMLSyntaxError as error:
        raise refused_limit(error.code, str(error), "document") or wrong from None


def refused_limit(code: int, message: str, what: str) -> Exception | None:
    """What the parser's own limits say of a document; None where it is simply wrong."""
    if code == etree.ErrorTypes.ERR_NO_MEMORY:
        return MemoryError()
    if code != etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return None
    if "depth" in message:
        return LimitExceeded(f"The {what} is nested deeper than the limit of 256 levels.", "nesting")
    return LimitExceeded(f"A text or attribute of the {what} exceeds the limit of 10 MB.", "text")
