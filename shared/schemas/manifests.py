"""Manifests as answers show them, and what is passed on the way there."""

from typing import Literal

from pydantic import Field

from ttmark.shared.schemas.fields import AnswerModel, left_out

ManifestStatus = Literal["valid", "not_trusted", "does_not_verify", "not_examined"]
AI_SOURCE_TYPE = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"


class ManifestClaims(AnswerModel):
    """What a manifest says, by who signed it."""

    digital_source_type: str | None = Field(
        default=None, description="IPTC's word for how the text was made: ends in `trainedAlgorithmicMedia`."
    )
    software: str | None = Field(default=None, description="What made it, such as the model.")
    time: str | None = Field(default=None, description="When, by the signer's own clock.")
    claim_generator: str | None = None
    signer: str | None = Field(default=None, description="Common name of the certificate.")
    organization: str | None = Field(default=None, description="Organisation of the certificate.")
    signpost: str | None = Field(
        default=None, description="Address of the `text-provenance.json` of whom to ask about the text."
    )


class Binding(AnswerModel):
    """The hash that binds a manifest to its text.

    Attributes:
        start, length: bytes of the wrapper, in the text in NFC and UTF-8.
        hash: of the other bytes, in base64.
    """

    start: int = Field(ge=0)
    length: int = Field(ge=0)
    alg: str
    hash: str


class ManifestReport(AnswerModel):
    """What can be said of a manifest without its text.

    Attributes:
        fault: why it does not verify, as a status code of C2PA; None: it does.
        trusted: whether its certificate leads to one that is trusted.
    """

    fault: str | None = None
    trusted: bool = False
    binding: Binding | None = None
    claims: ManifestClaims | None = None


class FoundManifest(AnswerModel):
    """A C2PA manifest in a document."""

    status: ManifestStatus = Field(
        description="`valid`: signature and text hold, and the certificate is trusted; "
        "`not_trusted`: it is not; `does_not_verify`: they do not hold."
    )
    reason: str | None = left_out("Why it is not `valid`: a status code of C2PA or words.")
    covers: Literal["whole", "passage"] | None = left_out(
        "What is signed: `whole`, all of the document but white space, or a `passage`."
    )
    start_char: int | None = left_out("With `passage`: where the signed text begins.")
    end_char: int | None = left_out("And where it ends.")
    claims: ManifestClaims | None = left_out(
        "What the signer says; left out where the manifest does not verify."
    )

    @property
    def says_generated(self) -> bool:
        """Whether a trusted signer says that a model wrote the text."""
        claims = self.claims
        return self.status == "valid" and claims is not None and claims.digital_source_type == AI_SOURCE_TYPE
