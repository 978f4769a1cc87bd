"""What the operator adds to texts to say where they are from: visible labels, metadata, signed manifests."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from ttmark.gen_service.api.plan.stages import CompletionState, Hook, MarkingChoice, RequestStage
from ttmark.gen_service.decoding.request import Delta
from ttmark.shared.http.service_errors import BadRequest, NotReady
from ttmark.shared.labels import Label
from ttmark.shared.manifests.signer import ManifestSigner, UnusableCredential
from ttmark.shared.schemas.fields import RequestPart
from ttmark.shared.schemas.generation.watermark_block import LabelNote, ManifestNote, WatermarkOptions

_GENERATED = "1"


class Labels(Hook):
    """The operator's label and metadata, on every answer; requests have no say.

    Args:
        label: None: texts have none.
        producer: who is named in the `AIGC` metadata; None: there is none.
    """

    models = None

    def __init__(self, label: Label | None, producer: str | None = None) -> None:
        self._label, self._producer = label, producer

    def earlier_answer(self, text: str) -> str:
        return self._label.removed(text) if self._label else text

    def stage(self, body: RequestPart, model: str) -> RequestStage:
        return LabelStage(self._label, self._producer)


class LabelStage(RequestStage):
    def __init__(self, label: Label | None, producer: str | None) -> None:
        self._label, self._producer = label, producer
        self._note: LabelNote | None = None

    def settle(self, choice: MarkingChoice, *, constrained: bool) -> None:
        """Texts that are `constrained` are for programs, and have no label."""
        if self._label is not None:
            self._note = "structured_output" if constrained else self._label.place
            self.text_start = len(self._label.characters) if self._note == "start" else 0

    def put(self, delta: Delta, sent: str) -> Delta:
        words = self._label.characters if self._label else ""
        if self._note == "start" and delta.text and not sent:
            return replace(delta, text=words + delta.text)
        if self._note == "end" and delta.finish_reason is not None and (delta.text or sent):
            return replace(delta, text=delta.text + words)
        return delta

    def notes(self, response_id: str) -> Mapping[str, Any]:
        """The metadata has the standard's names."""
        made = {"Label": _GENERATED, "ContentProducer": self._producer, "ProduceID": response_id}
        return {"label": self._note, "aigc": made if self._producer is not None else None}


_FIELD = "watermark.manifest"


class Manifests(Hook):
    """Signed manifests: asked of every request where they can be signed, else of those that ask for one.

    Args:
        signer: None: the service has no certificate.
        always: every text gets a manifest, asked for or not, unless a rule of the policy says otherwise.
    """

    fields = (_FIELD,)

    def __init__(self, signer: ManifestSigner | None, always: bool = False) -> None:
        self._signer, self._always = signer, always
        self.models = () if signer is None and not always else None

    def stage(self, body: RequestPart, model: str) -> RequestStage:
        return ManifestStage(self._signer, self._always, getattr(body, "watermark", None), model)


class ManifestStage(RequestStage):
    def __init__(
        self, signer: ManifestSigner | None, always: bool, options: WatermarkOptions | None, model: str
    ) -> None:
        self._signer, self._always, self._options, self._model = signer, always, options, model
        self._note: ManifestNote | None = None
        self._lacks = False

    def settle(self, choice: MarkingChoice, *, constrained: bool) -> None:
        """Whoever reads a text by the grammar that it is held to would stumble over a manifest.

        Raises:
            BadRequest: the request asks for what cannot be.
        """
        asked, demand = self._options.manifest if self._options else None, choice.manifest
        always = self._always if demand is None else demand == "always"
        if asked is False and always:
            raise BadRequest(f"{_FIELD}: this service puts one into every such text.", param=_FIELD)
        if asked and demand == "never":
            raise BadRequest(f"{_FIELD}: this service puts none into such texts.", param=_FIELD)
        if (asked or always) and self._signer is None:
            raise BadRequest(f"{_FIELD}: this service has no certificate to sign with.", param=_FIELD)
        if asked and constrained:
            raise BadRequest(f"{_FIELD}: not available together with structured output.", param=_FIELD)
        if asked or always:
            self._note = "structured_output" if constrained else "embedded"

    async def end(self, index: int, state: CompletionState) -> str:
        """The manifest that stands behind a completion.

        Raises:
            NotReady: it cannot be signed any more; without it the text would not be what was asked for.
        """
        if self._note != "embedded" or self._signer is None:
            return ""
        if not state.text:
            self._lacks = True
            return ""
        try:
            return await asyncio.to_thread(self._signer.wrapper, state.text, model=self._model)
        except UnusableCredential as error:
            structlog.get_logger("ttmark.generation").error("manifest_not_signed", reason=str(error))
            raise NotReady("The manifest cannot be signed.", retry_after=60) from error

    def notes(self, response_id: str) -> Mapping[str, Any]:
        return {"manifest": "no_text" if self._lacks else self._note}
