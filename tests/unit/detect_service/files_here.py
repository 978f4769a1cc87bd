"""Files are read in this process."""

from collections.abc import Hashable

from ttmark.detect_service.features.files.formats.readers_by_format import extract_text
from ttmark.detect_service.features.files.text.extraction import Extraction
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers


class InThisProcess(ExtractionWorkers):
    """Reads files here: no process has to start for it, as it does for files that may be hostile."""

    async def _in_turn(self, filename: str, content: bytes, owner: Hashable) -> Extraction:
        return extract_text(filename, content)
