"""Opens labels, metadata and manifests."""

from ttmark.gen_service.api.features import Feature
from ttmark.gen_service.features.manifests.provenance import LabelRule, Labels, Manifests
from ttmark.gen_service.features.manifests.settings import SigningSettings


def opened(_: object) -> Feature:
    settings = SigningSettings()
    labels = LabelRule(settings.load_label(), settings.aigc_producer or None)
    manifests = Manifests(settings.manifest_rule())
    return Feature(hooks=(manifests,) if labels == LabelRule() else (Labels(labels), manifests))
