"""Settings of manifests that are verified."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pydantic import Field

from ttmark.services.settings.provenance import LabelSettings, read_own
from ttmark.services.settings.values import ReadableFile
from ttmark.services.startup import StartupError, require

if TYPE_CHECKING:
    from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
    from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer

_TRUST = "TTMARK_C2PA_TRUST_FILE"


class TrustSettings(LabelSettings):
    """Whose manifests the detection service trusts, and which label it leaves out."""

    c2pa_trust_file: ReadableFile | None = Field(
        default=None,
        description="PEM file with the certificates whose C2PA manifests are trusted; left out: "
        "none. Needs the extra `provenance`.",
    )

    def manifest_examiner(self, workers: "ExtractionWorkers | None") -> "ManifestExaminer":
        """What verifies manifests; nothing is verified where the extra is not installed.

        Raises:
            StartupError: the file cannot be read or holds no certificates, others may write it, or the extra
                is not installed.
        """
        from ttmark.detect_service.features.manifests.manifest_examiner import (
            ManifestExaminer,  # settings load without the service
        )

        if self.c2pa_trust_file is None:
            return ManifestExaminer(workers if find_spec("c2pa") else None)
        require("provenance")
        from cryptography import x509

        content = read_own(self.c2pa_trust_file, _TRUST)
        try:
            x509.load_pem_x509_certificates(content)
            return ManifestExaminer(workers, content.decode("ascii"))
        except ValueError as error:
            raise StartupError(f"{_TRUST}: the file holds no certificates in PEM") from error
