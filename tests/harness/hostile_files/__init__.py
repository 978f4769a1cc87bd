"""Files made to cost whoever reads them as much as possible."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.harness.hostile_files import documents, docx, html, pdf, text

SIZE = 8 * 2**20
"""Bytes that each may have."""

HOSTILE_FILES: Mapping[str, Callable[[int], bytes]] = MappingProxyType(
    {**text.FILES, **html.FILES, **docx.FILES, **documents.FILES, **pdf.FILES}
)
"""By file name: makes one of about so many bytes; what is packed is smaller where that is worse."""
