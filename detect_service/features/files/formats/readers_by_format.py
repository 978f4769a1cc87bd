"""The reader of each format. Untrusted files belong into a worker process (`worker_pool.py`), not here."""

import base64
import json
from dataclasses import replace

from ttmark.detect_service.features.files.formats.epub_text import epub_text
from ttmark.detect_service.features.files.formats.html_text import html_text
from ttmark.detect_service.features.files.formats.mail_text import eml_text, mbox_text
from ttmark.detect_service.features.files.formats.plain_text import csv_text, plain_text
from ttmark.detect_service.features.files.office.docx_text import docx_text
from ttmark.detect_service.features.files.office.odt_text import odt_text
from ttmark.detect_service.features.files.office.rtf_text import rtf_text
from ttmark.detect_service.features.files.pdf.pdf_text import pdf_text
from ttmark.detect_service.features.files.pdf.picture_text import picture_text
from ttmark.detect_service.features.files.text.extraction import ALONE, MANIFEST, Extraction, format_of
from ttmark.shared.manifests.report import manifest_report

_READERS = {
    "text": plain_text,
    "html": html_text,
    "docx": docx_text,
    "odt": odt_text,
    "rtf": rtf_text,
    "pdf": pdf_text,
    "epub": epub_text,
    "eml": lambda content: eml_text(content, extract_text),
    "mbox": mbox_text,
    "csv": csv_text,
    "picture": picture_text,
}


def extract_text(filename: str, content: bytes) -> Extraction:
    """The text of a file as its reader sees it, in this process and without limits on time and memory.

    A file without a character but white space is an empty text, whatever its ending says.

    Raises:
        UnreadableFile: another kind of file than the name says, damaged, of a kind that is not supported, or
            nested, packed or merged beyond the reader's limits.
        MemoryError: the process may not have more memory.
    """
    if filename == MANIFEST:
        # The report of a C2PA manifest, of a `manifest_request`, in JSON in place of a text.
        asked = json.loads(content)
        report = manifest_report(base64.b64decode(asked["manifest"]), asked["anchors"])
        found = Extraction(report.model_dump_json())
    elif filename == ALONE:
        found = replace(eml_text(content), unread="Files that came with the mail were not read.")
    else:
        found = _READERS[format_of(filename) if content.strip() else "text"](content)
    parts = [
        part.model_copy(update={"name": _sendable(part.name), "text": _sendable(part.text)})
        for part in found.parts
    ]
    title = None if found.title is None else _sendable(found.title)
    return replace(found, text=_sendable(found.text), parts=tuple(parts), title=title)


def _sendable(text: str) -> str:
    """A lone surrogate has no UTF-8 form, so an answer that holds one could not be sent."""
    return text.encode("utf-8", "replace").decode("utf-8")
