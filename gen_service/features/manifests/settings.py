"""Settings of what says openly that a model wrote a text: `AIGC` metadata, C2PA manifests."""

from typing import Literal

from pydantic import Field

from ttmark.services.settings.provenance import LabelSettings, read_own
from ttmark.services.settings.values import ReadableFile
from ttmark.services.startup import StartupError, require
from ttmark.shared.manifests.signer import ManifestSigner, UnusableCredential

_CERTIFICATE, _KEY = "TTMARK_C2PA_CERT_FILE", "TTMARK_C2PA_KEY_FILE"


class SigningSettings(LabelSettings):
    """Whether and with what the generation service signs manifests, and what it says besides."""

    aigc_producer: str | None = Field(
        default=None,
        max_length=200,
        description="Provider's name or code for the metadata `AIGC` (GB 45438-2025); left out: none.",
    )
    c2pa_cert_file: ReadableFile | None = Field(
        default=None,
        description="PEM file with the certificates that sign C2PA manifests, the signer's first; "
        "left out: no manifests. Needs the extra `provenance`.",
    )
    c2pa_key_file: ReadableFile | None = Field(
        default=None, description="PEM file with the first certificate's private key, without a password."
    )
    c2pa_manifests: Literal["on_request", "always"] = Field(
        default="on_request", description="Which texts end in a manifest."
    )

    def load_signer(self) -> ManifestSigner | None:
        """What signs manifests; None where no certificate is named.

        Raises:
            StartupError: a file is missing, cannot be read, or others may write it; the two cannot sign; the
                extra is not installed.
        """
        chain, key = self.c2pa_cert_file, self.c2pa_key_file
        if chain is None and key is None:
            if self.c2pa_manifests == "always":
                raise StartupError("TTMARK_C2PA_MANIFESTS=always needs TTMARK_C2PA_CERT_FILE")
            return None
        if chain is None or key is None:
            raise StartupError(f"{_CERTIFICATE} and {_KEY} go together")
        require("provenance")
        try:
            return ManifestSigner(read_own(chain, _CERTIFICATE), read_own(key, _KEY), self.signpost)
        except UnusableCredential as error:
            raise StartupError(f"{_CERTIFICATE} and {_KEY} cannot sign manifests: {error}") from error
