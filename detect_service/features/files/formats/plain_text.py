"""Plain text and Markdown; the rows of a table (csv), each a text of its own."""

import csv
import io
import re

from ttmark.detect_service.features.files.text.encodings import decode
from ttmark.detect_service.features.files.text.extraction import Extraction, UnreadableFile, limited
from ttmark.shared.schemas.detection.extraction import ExtractedPart


def plain_text(content: bytes) -> Extraction:
    """The characters of the file but a byte order mark. Raises UnreadableFile: no encoding is told."""
    decoded = decode(content)
    return Extraction(decoded.text, decoded.encoding, unread=decoded.unread)


_BETWEEN_CELLS = ",;\t"
# Spreadsheets write a line that names the separator, and lines without a word above the titles.
_SEPARATOR = re.compile(r'\A\s*(?:"?sep=.{0,2}"?\r?\n)?(?:[ ,;\t"]*\r?\n)*', re.I)
_LONGEST_CELL = 2**31 - 1
_LONGEST_NAME = 256


def csv_text(content: bytes) -> Extraction:
    """The cells of the column `text`, each by the cell of the column `id`, or by its row's number from 1 on.

    Cells lie between commas, semicolons or tabs, whatever the first line has most of.

    Raises:
        UnreadableFile: no such column, damaged, or the encoding cannot be told.
    """
    decoded = decode(content)
    text = _SEPARATOR.sub("", decoded.text)
    first = text.partition("\n")[0]
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(_BETWEEN_CELLS, key=first.count), strict=True
    )
    try:
        columns = [name.strip().lower() for name in next(rows, [])]
        if "text" not in columns:
            raise UnreadableFile(
                "The table (csv) has no column that its first line calls text. `ttmark detect --bulk` reads "
                "tables that are large.",
                "no_text",
            )
        named = columns.index("id") if "id" in columns else None
        place = columns.index("text")
        parts = limited(
            ExtractedPart(
                name=(row[named][:_LONGEST_NAME] if named is not None and named < len(row) else "")
                or str(number),
                text=row[place],
            )
            for number, row in enumerate(rows, 1)
            if place < len(row)
        )
    except csv.Error:
        raise UnreadableFile("The file is not a table (csv) that can be read.", "damaged") from None
    if not parts:
        raise UnreadableFile("The table (csv) has no row with a text.", "no_text")
    return Extraction("", decoded.encoding, parts, unread=decoded.unread)
