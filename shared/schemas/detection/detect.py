"""Requests and answers of the detection service: documents, what was found in them, and keys."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator
from pydantic.json_schema import SkipJsonSchema

from ttmark.shared.schemas.fields import AnswerModel, NoTruthValue, Rate, StrictModel, WholeNumbers, left_out
from ttmark.shared.schemas.generation.origin import NOT_BOTH, ORIGIN_OR_MORE, PROMPT_OR_MESSAGES, Origin
from ttmark.shared.schemas.manifests import FoundManifest

ReadingName = Literal["as_sent", "unwrapped", "typography"]
"""How a text is read: as it is, without tricks and lines of a page, or without typography as well."""


class Basis(StrEnum):
    """What an answer rests on."""

    WATERMARK = "watermark"
    FOREIGN_WATERMARK = "foreign_watermark"
    METADATA = "metadata"


class DetectedKey(AnswerModel):
    """The key version that explains the document best."""

    key_id: str
    version: int
    profile: str
    scheme: str | None = left_out("Of another system's key: its scheme.")
    pool_key: int | None = Field(default=None, description="Which key of its pool, from 0 on.")
    payload: int | None = Field(
        default=None,
        description="The number that the request for the text chose; null where several keys of the "
        "pool were found.",
    )


class BlockEvidence(AnswerModel):
    """Standardised score of one block, mean 0 and variance 1 without a watermark.

    Direct detection lists the blocks that it sums, all else those of the best alignment, whose mean
    is somewhat above 0 without a watermark: 0.15 for pairs.
    """

    start_token: int
    end_token: int
    start_char: int | None = None
    end_char: int | None = None
    score: float


class Segment(AnswerModel):
    """A watermarked passage: half-open ranges of tokens and of characters of the submitted text."""

    start_token: int
    end_token: int
    start_char: int | None = None
    end_char: int | None = None
    log10_e_value: float | None = Field(description="log10 of how many passages this strong chance gives.")
    key: DetectedKey


class ForeignMarkFound(AnswerModel):
    """The mark of another system in a document."""

    key: DetectedKey
    log10_p: float = Field(description="Corrected for every hypothesis tried.")
    score: float = Field(description="As the other system's detector computes it.")
    scored_tokens: int
    segments: list[Segment] = Field(description="Passages, whose ends are in doubt by half a window.")


MAX_DOCUMENTS = 256
DEFAULT_FPR = 1e-5
DEFAULT_BETA = 5.0

TokenId = Annotated[int, Field(ge=0, lt=2**32 - 1)]  # the last value of 32 bits stands for no token
KeyId = Annotated[str, Field(min_length=1, max_length=128)]
Verdict = Literal["watermarked", "not_detected", "too_short", "not_examined", "no_verdict"]
Voice = Literal["own", "quoted", "both", "whole", "attachment"]
Phase = Literal[0, "any"]


EXACTLY_ONE_CONTENT: list[JsonValue] = [
    {"required": ["text"], "properties": {"text": {"type": "string"}, "token_ids": {"type": "null"}}},
    {"required": ["token_ids"], "properties": {"token_ids": {"type": "array"}, "text": {"type": "null"}}},
]


class Document(StrictModel):
    """One document: either its text or its token ids, and an id of the caller's that comes back."""

    model_config = ConfigDict(json_schema_extra={"oneOf": EXACTLY_ONE_CONTENT})

    id: Annotated[str, Field(max_length=256)] | None = Field(
        default=None, description="Comes back; left out: the index in `inputs`."
    )
    text: str | None = None
    token_ids: Annotated[list[TokenId], Field(fail_fast=True), WholeNumbers] | None = None
    attachment: bool = Field(default=False, description="Whether it came as a file with a mail.")

    @model_validator(mode="after")
    def _exactly_one_content(self) -> Self:
        if (self.text is None) == (self.token_ids is None):
            raise ValueError("give exactly one of `text` and `token_ids`")
        return self


class DetectionRequest(StrictModel):
    """What all detection modes share.

    Attributes:
        mode: the detector's name.
        path: of the route where it is asked.
    """

    mode: ClassVar[str]
    path: ClassVar[str]

    inputs: Annotated[list[Document], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    keys: Annotated[list[KeyId], Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="Key ids to try; left out: all that the caller has."
    )
    fpr: Rate = Field(
        default=DEFAULT_FPR,
        description="False positive rate per document, all hypotheses counted; without "
        "detect:evidence one of the token's rates (`GET /v1/keys`).",
    )
    evidence: Literal["none", "blocks"] = Field(
        default="none", description="`blocks` adds the score of each scored block (scope detect:evidence)."
    )
    normalize: bool = Field(
        default=True,
        description="Read a text also without what hides a mark or a page did to it, and without typography; "
        "the best reading counts, corrected for three.",
    )
    case: bool = Field(
        default=False, description="Adds a signed case to each result, for `ttmark case verify`."
    )


class DirectRequest(DetectionRequest):
    """Unedited text: blocks at fixed boundaries (paper Eq. 6)."""

    mode: ClassVar[str] = "direct"
    path: ClassVar[str] = "/v1/detect/direct"
    phase: Annotated[Phase, NoTruthValue] | None = Field(
        default=None,
        description="Where blocks begin: `0`, or `any`. Left out: `any` for text, `0` for token ids.",
    )

    def phase_of(self, document: Document) -> Phase:
        """The phase that `document` is read with, by default 0 for token ids and any for a text.

        Read again from its text, a generated document can begin in the middle of a block; its own token ids
        cannot.
        """
        if self.phase is not None:
            return self.phase
        return 0 if document.text is None else "any"


class AlignedRequest(DetectionRequest):
    """Edited text: blocks are realigned around insertions and deletions (paper Algorithm 2)."""

    mode: ClassVar[str] = "aligned"
    path: ClassVar[str] = "/v1/detect/aligned"
    beta: Annotated[float, Field(ge=0, le=100)] = Field(
        default=DEFAULT_BETA,
        description="What skipping a token costs, in standard deviations. Another value needs "
        "detect:evidence.",
    )


class LocalizedRequest(DetectionRequest):
    """Watermarked passages inside a longer document."""

    mode: ClassVar[str] = "localized"
    path: ClassVar[str] = "/v1/detect/localized"
    method: Literal["scan", "waterseeker"] = Field(
        default="scan", description="`waterseeker` is the published method."
    )


_CONVERSATION_OR_MORE: list[JsonValue] = [
    {"properties": {"conversation": {"const": False}}},
    {"properties": {"evidence": {"const": "none"}, "case": {"const": False}}},
]


class CombinedRequest(Origin, DetectionRequest):
    """One question: unedited, edited, or passages in a longer text, by one likelihood ratio.

    With a prompt or sampling the model that wrote the texts reads them; that needs detect:evidence.
    """

    mode: ClassVar[str] = "combined"
    path: ClassVar[str] = "/v1/detect"

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"inputs": [{"id": "a", "text": "The text to check."}], "fpr": 1e-5}],
            "allOf": [
                {"anyOf": options} for options in (_CONVERSATION_OR_MORE, ORIGIN_OR_MORE, PROMPT_OR_MESSAGES)
            ],
        }
    )

    conversation: bool = Field(
        default=False,
        description="The inputs are messages of one conversation, in order: one result. Without "
        "`evidence` and `case`.",
    )
    reader: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="Whether a language model reads along: `auto` where that may change the verdict. "
        "The others need detect:evidence.",
    )

    @model_validator(mode="after")
    def _one_result_of_a_conversation(self) -> Self:
        if self.conversation and (self.case or self.evidence != "none"):
            raise ValueError("with `conversation` there is no `case`, and `evidence` is `none`")
        if self.prompt is not None and self.messages is not None:
            raise ValueError(NOT_BOTH)
        if (self.conversation or self.case or self.reader == "never") and self.has_origin:
            raise ValueError("with a prompt or sampling a model reads; there is no `conversation` and `case`")
        return self


_KINDS: list[type[DetectionRequest]] = [CombinedRequest, DirectRequest, AlignedRequest, LocalizedRequest]
REQUESTS = {kind.mode: kind for kind in _KINDS}


class NormalizationReport(AnswerModel):
    """Characters of a text that can hide a watermark, by accident or not, counted by kind."""

    invisible: int = Field(description="Zero-width and other invisible characters.")
    look_alikes: int = Field(description="Letters drawn like Latin ones among Latin letters, or styled.")
    white_space: int = Field(description="Odd spaces, and several for one; none of typography or of a page.")
    marks: int = Field(default=0, description="Combining marks that no language needs there.")
    undone: bool = Field(description="Whether the text was read without them, too (`normalize`).")


class Message(AnswerModel):
    """The answer in words, for people. Words may change; programs read the other fields."""

    headline: str
    explanation: str
    caution: str = Field(description="What the answer does not say.")
    language: str | None = left_out("Of these words (BCP 47).")


class DocumentError(AnswerModel):
    """Why there is nothing to say of a document."""

    code: str = Field(
        description="`internal_error`, `evidence_spent`, `chance_findings_spent`, `space_full`, "
        "`ids_spell_nothing`, or in later services still others."
    )
    message: str
    retry_after: float | None = left_out("Seconds after which the document can be asked about again.")


class AskedBefore(AnswerModel):
    """What was said of a passage before the answers about it were used up."""

    verdict: Literal["watermarked", "not_detected"]
    at: float = Field(description="When, in seconds since 1970.")
    tokens: int = Field(description="Of the passage, about.")


class DetectionResult(AnswerModel):
    """Outcome for one document. Fields beyond the verdict are null without the scope detect:evidence."""

    id: str
    verdict: Verdict = Field(description="`not_examined` and `no_verdict` say nothing about the document.")
    error: DocumentError | None = left_out("With `not_examined` and `no_verdict`: why.")
    basis: str = Field(
        default=Basis.WATERMARK,
        description="What the verdict rests on: `watermark`, ours, found or not; "
        "`foreign_watermark`, another system's; `metadata`, a manifest. Later services "
        "may know others.",
    )
    message: Message | None = Field(default=None, description="Null from a service that has no words yet.")
    tokens: int = Field(description="Of the reading that counts.")
    hypotheses: int = Field(description="How many were tried; `p_value` is corrected for them.")
    tokens_needed: int | None = Field(
        default=None, description="With `too_short`: fewer tokens are never enough at this fpr."
    )
    tokens_typical: int | None = Field(
        default=None, description="With `too_short`: half of the measured texts needed so many tokens."
    )
    p_value: float | None = None
    log10_p: float | None = None
    z: float | None = None
    scored_blocks: int | None = None
    key: DetectedKey | None = Field(default=None, description="Set when the verdict is `watermarked`.")
    pool_keys_found: int | None = Field(
        default=None, description="With a pool: how many of its keys reach `fpr` alone."
    )
    segments: list[Segment] | None = Field(
        default=None,
        description="Passages, in order. Of the one question: where `scope` is `passages`; chance gives one "
        "at most so strong in such a text. `localized`: each at `fpr`. Other modes look for none: null.",
    )
    foreign_marks: list[ForeignMarkFound] | None = left_out("Marks of other systems, each at `fpr`.")
    evidence: list[BlockEvidence] | None = None
    reading: str | None = Field(
        default=None,
        description="Which reading counts: `as_sent`, `unwrapped`, `typography`. Characters are always those "
        "of the text as sent.",
    )
    normalization: NormalizationReport | None = Field(
        default=None, description="Null for a document that came as token ids."
    )
    metadata: list[FoundManifest] | None = left_out("C2PA manifests in the text, in order.")
    voice: Voice | None = left_out(
        "With `watermarked`: whether quoted lines or the sender's own words carry the mark by "
        "themselves. `whole`: neither do, or the token sees no evidence. Null: nothing is quoted."
    )
    asked_before: AskedBefore | None = left_out("What was said of a passage before its answers were used up.")
    reads_back: bool | None = left_out("False: the text that the token ids spell has others.")
    case: str | None = left_out("With `case`: the signed case, to be saved as it is.")
    verdict_of_scheme: SkipJsonSchema[dict[str, Verdict]] = Field(default={}, exclude=True)
    """Where keys of other systems were tried: by their schemes, and of our own keys by ""; in no answer."""


class DetectionResponse(AnswerModel):
    """Results in the order of the inputs."""

    results: list[DetectionResult]
    skipped_keys: list[str] = Field(default=[], description="Keys not tried for want of their tokenizer.")
    request_id: str


class MarkedShare(AnswerModel):
    """How much of a text carries the mark of keys found or of their pools, words edited inside included."""

    estimate: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1, description="Lower end of a 95 % interval.")
    high: float = Field(ge=0, le=1, description="What shows too little of the mark may be missing.")


ReaderState = Literal["none", "down", "not_needed", "read"]


class ConversationMessage(AnswerModel):
    """A message of a conversation, and what all up to it say together."""

    id: str
    tokens: int
    error: DocumentError | None = left_out("Why the message was left out, if it was.")
    log10_e: float | None = Field(
        default=None, description="Of the messages up to this one; 1 / E is a p-value wherever one stops."
    )
    key: DetectedKey | None = Field(
        default=None, description="The key that the message speaks for; by itself it may prove little."
    )


class CombinedResult(DetectionResult):
    """Outcome for one document, by the likelihood ratio."""

    log10_e: float | None = Field(default=None, description="log10 of the mean E-value; 1 / E is a p-value.")
    reader: ReaderState | None = Field(
        default=None,
        description="Whether a language model read along; `not_needed`: the answer stood without; "
        "`down`: it does not answer, or has no time.",
    )
    scope: Literal["whole", "passages"] | None = Field(
        default=None,
        description="With `watermarked`: whether `segments` stand out, or the evidence is of the "
        "whole text. Neither says that all words are the model's.",
    )
    marked_share: MarkedShare | None = Field(default=None, description="With `watermarked`.")
    weak: bool | None = Field(
        default=None, description="Not found, but with a p-value of at most 100 times `fpr`, and 0.01."
    )
    messages: list[ConversationMessage] | None = left_out("Of a conversation: its messages in order.")


class CombinedResponse(DetectionResponse):
    """Results in the order of the inputs; of a conversation one."""

    results: list[CombinedResult]  # type: ignore[assignment]
