"""Opens labels, metadata and manifests."""

from ttmark.gen_service.api.features import GenerationFeature
from ttmark.gen_service.features.manifests.provenance import Labels, Manifests
from ttmark.gen_service.features.manifests.settings import SigningSettings


def opened(_: object) -> GenerationFeature:
    settings = SigningSettings()
    label, producer = settings.load_label(), settings.aigc_producer or None
    manifests = Manifests(settings.load_signer(), settings.c2pa_manifests == "always")
    return GenerationFeature(
        hooks=(Labels(label, producer), manifests) if label or producer else (manifests,)
    )
