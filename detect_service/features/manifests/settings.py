"""Settings of manifests that are verified."""

from pydantic import Field

from ttmark.services.settings.provenance import LabelSettings
from ttmark.services.settings.values import ReadableFile


class TrustSettings(LabelSettings):
    """Whose manifests the detection service trusts, and which label it leaves out."""

    c2pa_trust_file: ReadableFile | None = Field(
        default=None,
        description="PEM file with the certificates whose C2PA manifests are trusted; left out: "
        "none. Needs the extra `provenance`.",
    )
