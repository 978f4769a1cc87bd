"""Opens the feature: manifests are verified, and labels set apart."""

from importlib.util import find_spec

from cryptography import x509

from ttmark.detect_service.api.features import DetectionFeature
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.manifests.settings import TrustSettings
from ttmark.detect_service.features.manifests.stage import stage_of
from ttmark.services.composition.opening import Opening
from ttmark.services.settings.provenance import read_own
from ttmark.services.startup import StartupError, require
from ttmark.shared.labels import Label

_TRUST = "TTMARK_C2PA_TRUST_FILE"


def opened(opening: Opening) -> DetectionFeature:
    settings = TrustSettings()
    examiner = manifest_examiner(settings, opening.provided.get(ExtractionWorkers))
    return manifests(examiner, settings.load_label())


def manifest_examiner(settings: TrustSettings, workers: ExtractionWorkers | None) -> ManifestExaminer:
    """What verifies manifests; nothing is verified where the extra is not installed.

    Raises:
        StartupError: the file cannot be read or holds no certificates, others may write it, or the extra
            is not installed.
    """
    if settings.c2pa_trust_file is None:
        return ManifestExaminer(workers if find_spec("c2pa") else None)
    require("provenance")
    content = read_own(settings.c2pa_trust_file, _TRUST)
    try:
        x509.load_pem_x509_certificates(content)
        return ManifestExaminer(workers, content.decode("ascii"))
    except ValueError as error:
        raise StartupError(f"{_TRUST}: the file holds no certificates in PEM") from error


def manifests(examiner: ManifestExaminer, label: Label | None = None) -> DetectionFeature:
    return DetectionFeature(stage=stage_of(examiner, label), provides=[examiner])
