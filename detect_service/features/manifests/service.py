"""Opens the feature: manifests are verified, and labels set apart."""

from ttmark.detect_service.api.features import Feature
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.manifests.settings import TrustSettings
from ttmark.detect_service.features.manifests.stage import stage_of
from ttmark.services.composition.opening import Opening
from ttmark.shared.labels import Label


def opened(opening: Opening) -> Feature:
    settings = TrustSettings()
    examiner = settings.manifest_examiner(opening.provided.get(ExtractionWorkers))
    return manifests(examiner, settings.load_label())


def manifests(examiner: ManifestExaminer, label: Label | None = None) -> Feature:
    return Feature(stage=stage_of(examiner, label), provides=[examiner])
