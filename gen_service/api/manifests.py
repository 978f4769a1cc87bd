"""Whether completions end in a signed manifest, and putting it there."""

import asyncio
from dataclasses import dataclass

import structlog

from ttmark.gen_service.api.marking_choice import ManifestDemand
from ttmark.shared.http.service_errors import BadRequest, NotReady
from ttmark.shared.manifests.signer import ManifestSigner, UnusableCredential
from ttmark.shared.schemas.watermark_block import ManifestNote, WatermarkOptions

_FIELD = "watermark.manifest"


@dataclass(frozen=True, slots=True)
class ManifestRule:
    """The operator's.

    Attributes:
        signer: None: the service has no certificate.
        always: every text gets a manifest, asked for or not, unless a rule of the policy says otherwise.
    """

    signer: ManifestSigner | None = None
    always: bool = False

    def choose(
        self, options: WatermarkOptions | None, demand: ManifestDemand | None, *, structured: bool
    ) -> ManifestNote | None:
        """What becomes of a request's manifests; None: there are none.

        Args:
            demand: of the rule that decided on the request.
            structured: the text is held to a grammar, and whoever reads it by that would stumble over more.

        Raises:
            BadRequest: the request asks for what cannot be.
        """
        asked = options.manifest if options else None
        always = self.always if demand is None else demand == "always"
        if asked is False and always:
            raise BadRequest(f"{_FIELD}: this service puts one into every such text.", param=_FIELD)
        if asked and demand == "never":
            raise BadRequest(f"{_FIELD}: this service puts none into such texts.", param=_FIELD)
        if (asked or always) and self.signer is None:
            raise BadRequest(f"{_FIELD}: this service has no certificate to sign with.", param=_FIELD)
        if asked and structured:
            raise BadRequest(f"{_FIELD}: not available together with structured output.", param=_FIELD)
        if not (asked or always):
            return None
        return "structured_output" if structured else "embedded"

    async def wrapper(self, text: str, model: str) -> str:
        """The manifest that stands behind a completion's `text`; empty where there is none.

        Raises:
            NotReady: it cannot be signed any more; without it the text would not be what was asked for.
        """
        if self.signer is None or not text:
            return ""
        try:
            return await asyncio.to_thread(self.signer.wrapper, text, model=model)
        except UnusableCredential as error:
            structlog.get_logger("ttmark.generation").error("manifest_not_signed", reason=str(error))
            raise NotReady("The manifest cannot be signed.", retry_after=60) from error
