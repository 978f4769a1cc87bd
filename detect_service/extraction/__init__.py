"""Text out of files: docx, html, md, txt."""

from detect_service.extraction.errors import UnreadableFile
from detect_service.extraction.extract import extract_text

__all__ = ["UnreadableFile", "extract_text"]
