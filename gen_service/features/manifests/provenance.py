"""What the operator adds to texts to say where they are from: visible labels, metadata, signed manifests."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from ttmark.gen_service.api.plan.stages import CompletionState, Hook, ManifestDemand, MarkingChoice, Stage
from ttmark.gen_service.decoding.request import Delta
from ttmark.shared.http.service_errors import BadRequest, NotReady
from ttmark.shared.labels import Label
from ttmark.shared.manifests.signer import ManifestSigner, UnusableCredential
from ttmark.shared.schemas.fields import RequestPart
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


class Labels(Hook):
    """The operator's label and metadata, on every answer."""

    models = None

    def __init__(self, rule: LabelRule) -> None:
        self._rule = rule

    def earlier_answer(self, text: str) -> str:
        return self._rule.label.removed(text) if self._rule.label else text

    def stage(self, body: RequestPart, model: str) -> Stage:
        return LabelStage(self._rule)


class LabelStage(Stage):
    def __init__(self, rule: LabelRule) -> None:
        self._rule = rule
        self._note: LabelNote | None = None

    def settle(self, choice: MarkingChoice, *, constrained: bool) -> None:
        self._note = self._rule.choose(structured=constrained)
        self.text_start = self._rule.text_start if self._note == "start" else 0

    def put(self, delta: Delta, sent: str) -> Delta:
        return delta if self._note == "structured_output" else self._rule.put(delta, sent)

    def notes(self, response_id: str) -> Mapping[str, Any]:
        return {"label": self._note, "aigc": self._rule.aigc(response_id)}


class Manifests(Hook):
    """Signed manifests: asked of every request where they can be signed, else of those that ask for one."""

    fields = ("watermark.manifest",)

    def __init__(self, rule: ManifestRule) -> None:
        self._rule = rule
        self.models = () if rule.signer is None and not rule.always else None

    def stage(self, body: RequestPart, model: str) -> Stage:
        return ManifestStage(self._rule, getattr(body, "watermark", None), model)


class ManifestStage(Stage):
    def __init__(self, rule: ManifestRule, options: WatermarkOptions | None, model: str) -> None:
        self._rule, self._options, self._model = rule, options, model
        self._note: ManifestNote | None = None
        self._lacks = False

    def settle(self, choice: MarkingChoice, *, constrained: bool) -> None:
        self._note = self._rule.choose(self._options, choice.manifest, structured=constrained)

    async def end(self, index: int, state: CompletionState) -> str:
        if self._note != "embedded":
            return ""
        wrapper = await self._rule.wrapper(state.text, self._model)
        self._lacks = self._lacks or not wrapper
        return wrapper

    def notes(self, response_id: str) -> Mapping[str, Any]:
        return {"manifest": "no_text" if self._lacks else self._note}
