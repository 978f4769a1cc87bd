"""What the operator adds to texts to say where they are from: visible labels, metadata, signed manifests."""

import asyncio
from dataclasses import dataclass, replace

import structlog

from ttmark.gen_service.decoding.request import Delta
from ttmark.gen_service.features.policy.marking_policy import ManifestDemand
from ttmark.shared.http.service_errors import BadRequest, NotReady
from ttmark.shared.labels import Label
from ttmark.shared.manifests.signer import ManifestSigner, UnusableCredential
from ttmark.shared.schemas.generation.watermark_block import LabelNote, ManifestNote, WatermarkOptions

_GENERATED = "1"


@dataclass(frozen=True, slots=True)
class LabelRule:
    """The operator's; requests have no say.

    Attributes:
        label: None: texts have none.
        producer: who is named in the `AIGC` metadata; None: there is none.
    """

    label: Label | None = None
    producer: str | None = None

    def choose(self, *, structured: bool) -> LabelNote | None:
        """What becomes of the label of a request's texts; `structured` ones are for programs."""
        if self.label is None:
            return None
        return "structured_output" if structured else self.label.place

    @property
    def text_start(self) -> int:
        return len(self.label.characters) if self.label and self.label.place == "start" else 0

    def put(self, delta: Delta, sent: str) -> Delta:
        """A delta of a labelled completion with the label, where it begins or ends the text.

        Args:
            sent: the completion's text before this delta.
        """
        label = self.label
        begins = bool(delta.text) and not sent
        ends = delta.finish_reason is not None and bool(delta.text or sent)
        if label is not None and label.place == "start" and begins:
            return replace(delta, text=label.characters + delta.text)
        if label is not None and label.place == "end" and ends:
            return replace(delta, text=delta.text + label.characters)
        return delta

    def aigc(self, response_id: str) -> dict[str, str] | None:
        """The metadata of a response, by the standard's names."""
        if self.producer is None:
            return None
        return {"Label": _GENERATED, "ContentProducer": self.producer, "ProduceID": response_id}


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
