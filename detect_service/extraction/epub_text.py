"""The text of an electronic book (epub): its chapters in reading order."""

import posixpath
import zipfile
from urllib.parse import unquote

from ttmark.detect_service.extraction.extraction import Extraction, UnreadableFile
from ttmark.detect_service.extraction.html_text import html_text
from ttmark.detect_service.extraction.zip_archive import open_archive, parse_part

_CONTAINER = "META-INF/container.xml"
_PACKAGE = "{http://www.idpf.org/2007/opf}"
_PAGES = frozenset({"application/xhtml+xml", "text/html"})


def epub_text(content: bytes) -> Extraction:
    """What the pages show, each page once, with an empty line between two.

    Raises:
        UnreadableFile: not an epub file, damaged, or its pages are locked.
        LimitExceeded: too large when unpacked, or nested deeper than the limits.
    """
    wrong = UnreadableFile("The file is not a book (epub) that can be read.", "damaged")
    with open_archive(content, wrong) as archive:
        pages = [html_text(archive.read(name)).text for name in _reading_order(archive, wrong)]
    return Extraction("\n\n".join(page for page in pages if page))


def _reading_order(archive: zipfile.ZipFile, wrong: UnreadableFile) -> list[str]:
    """Names of the pages in the archive, in the order of the book's spine."""
    container = parse_part(archive.read(_CONTAINER), wrong)
    place = next(
        (name for element in container.iter("{*}rootfile") if (name := element.get("full-path"))), None
    )
    if place is None:
        raise wrong
    package = parse_part(archive.read(place), wrong)
    hrefs = {
        item.get("id"): item.get("href", "")
        for item in package.iter(f"{_PACKAGE}item")
        if item.get("media-type") in _PAGES
    }
    spine = [item.get("idref") for item in package.iter(f"{_PACKAGE}itemref")]
    folder = posixpath.dirname(place)
    names = [
        posixpath.normpath(posixpath.join(folder, unquote(hrefs[name]))) for name in spine if name in hrefs
    ]
    return list(dict.fromkeys(names))
