"""Settings of what says openly that a model wrote a text: visible labels, `AIGC` metadata, C2PA manifests."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import ReadableFile
from ttmark.services.startup import StartupError, require
from ttmark.shared.labels import TEMPLATES, Label, LabelPlace
from ttmark.shared.manifests.signer import ManifestSigner, UnusableCredential
from ttmark.shared.signpost import DOCUMENT_PATH, deployment

if TYPE_CHECKING:
    from ttmark.gen_service.features.manifests.provenance import ManifestRule


class LabelSettings(Settings):
    """The words that generated texts carry visibly; detection leaves them out where they stand."""

    label: str | None = Field(
        default=None,
        max_length=200,
        description="Visible label of texts: `eu`, `cn`, or one line of your own; left out: none. "
        "Both services need the same.",
    )
    label_place: LabelPlace = Field(default="start", description="Where the label stands.")
    signpost: Annotated[str, AfterValidator(deployment)] | None = Field(
        default=None,
        description="Public address of the detection service, as https://detect.example.org, whose "
        "`/.well-known/text-provenance.json` labels and manifests name; left out: none. Both services need "
        "the same.",
    )

    @field_validator("label")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        words = (value or "").strip()
        if not words.isprintable():
            raise ValueError("a label is one line of printable characters")
        return words or None

    def load_label(self) -> Label | None:
        """The label, the words of a template in place of its name, with the signpost behind them."""
        if self.label is None:
            return None
        asked = f" ({self.signpost}{DOCUMENT_PATH})" if self.signpost else ""
        return Label(TEMPLATES.get(self.label, self.label) + asked, self.label_place)


class AigcSettings(LabelSettings):
    """What the generation service says besides."""

    aigc_producer: str | None = Field(
        default=None,
        max_length=200,
        description="Provider's name or code for the metadata `AIGC` (GB 45438-2025); left out: none.",
    )


_OTHERS_MAY_WRITE = 0o022
_CERTIFICATE, _KEY = "TTMARK_C2PA_CERT_FILE", "TTMARK_C2PA_KEY_FILE"


class SigningSettings(LabelSettings):
    """Whether and with what the generation service signs manifests."""

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

    def manifest_rule(self, *, demanded: bool) -> "ManifestRule":
        """The rule for texts of this service.

        Args:
            demanded: by a rule of the marking policy.

        Raises:
            StartupError: a file is missing, cannot be read, or others may write it; the two cannot sign; the
                extra is not installed.
        """
        from ttmark.gen_service.features.manifests.provenance import (
            ManifestRule,  # the settings load without the service
        )

        chain, key = self.c2pa_cert_file, self.c2pa_key_file
        if chain is None and key is None:
            if demanded or self.c2pa_manifests == "always":
                asking = "a rule of TTMARK_POLICY_FILE" if demanded else "TTMARK_C2PA_MANIFESTS=always"
                raise StartupError(f"{asking} needs TTMARK_C2PA_CERT_FILE")
            return ManifestRule()
        if chain is None or key is None:
            raise StartupError(f"{_CERTIFICATE} and {_KEY} go together")
        require("provenance")
        try:
            signer = ManifestSigner(read_own(chain, _CERTIFICATE), read_own(key, _KEY), self.signpost)
        except UnusableCredential as error:
            raise StartupError(f"{_CERTIFICATE} and {_KEY} cannot sign manifests: {error}") from error
        return ManifestRule(signer, self.c2pa_manifests == "always")


def read_own(path: Path, variable: str) -> bytes:
    try:
        if path.stat().st_mode & _OTHERS_MAY_WRITE:
            raise StartupError(f"{variable}: others than its owner may write the file: chmod go-w it")
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"{variable}: cannot be read: {error.strerror}") from error
