"""The text of an electronic book (epub): its chapters in reading order."""

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from ttmark.detect_service.features.files.formats.html_text import html_text
from ttmark.detect_service.features.files.text.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.features.files.text.zip_archive import Archive, open_archive

_PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document"})
# Pages of books are XML, where an element may end where it begins; in HTML its text would have no end.
_EMPTY = re.compile(
    rb"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)[\s/])([A-Za-z][\w:.-]{0,60})"
    rb"(\s[^<>]*)?/>",
    re.I,
)


def epub_text(content: bytes) -> Extraction:
    """What the pages show, each page once, with an empty line between two.

    Raises:
        UnreadableFile: not an epub file, damaged, its pages are locked, or none of them is there.
        LimitExceeded: too large when unpacked, or nested deeper than the limits.
    """
    wrong = UnreadableFile("The file is not a book (epub) that can be read.", "damaged")
    with open_archive(content, wrong) as archive:
        names = dict.fromkeys(_reading_order(archive, wrong))
        pages = [_page(archive.read(name)) for name in names]
    read = [page for page in pages if page is not None]
    if not read:
        raise wrong
    missing = len(pages) - len(read)
    unread = f"{missing} of {len(pages)} pages of the book could not be read." if missing else None
    return Extraction("\n\n".join(page for page in read if page), unread=unread)


def _page(content: bytes | None) -> str | None:
    """The text of a page; None: it is not there, or cannot be read."""
    if content is None:
        return None
    try:
        return html_text(_EMPTY.sub(rb"<\1\2></\1>", content)).text
    except LimitExceeded:
        raise
    except UnreadableFile:
        return None


def _reading_order(archive: Archive, wrong: UnreadableFile) -> Iterator[str]:
    """Names of the pages in the archive, in the order of the book's spine."""
    container = archive.xml("META-INF/container.xml")
    roots = () if container is None else container.iter("{*}rootfile")
    place = next((name for element in roots if (name := element.get("full-path"))), "")
    package = archive.xml(place)
    if package is None:
        raise wrong
    hrefs = {
        item.get("id"): item.get("href", "").partition("#")[0]
        for item in package.iter("{*}item")
        if item.get("media-type") in _PAGES
    }
    for reference in package.iter("{*}itemref"):
        if href := hrefs.get(reference.get("idref")):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(href)))
