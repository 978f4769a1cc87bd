"""The text of documents in Rich Text Format (rtf)."""

from striprtf.striprtf import rtf_to_text

from ttmark.detect_service.extraction.extraction import Extraction, UnreadableFile


def rtf_text(content: bytes) -> Extraction:
    """Paragraphs as lines, cells of a table row between bars, as the library `striprtf` reads them.

    Raises:
        UnreadableFile: not an rtf file, or damaged.
    """
    wrong = UnreadableFile(
        "The file is not a document in Rich Text Format (rtf) that can be read.", "damaged"
    )
    if not content.lstrip().startswith(rb"{\rtf"):
        raise wrong
    try:
        # All of it is ASCII; other characters are escapes, or bytes of the code page that the file names.
        return Extraction(rtf_to_text(content.decode("latin-1")).strip("\n"))
    except (ValueError, LookupError, OverflowError):
        raise wrong from None
