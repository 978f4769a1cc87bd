"""`POST /v1/content_provenance_checks`: which marks the text of a file carries, as OpenAI's clients ask."""

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from ttmark.shared.schemas.detection.detect import CombinedResult, DetectedKey, DetectionResult
from ttmark.shared.schemas.fields import AnswerModel, StrictModel, left_out

MarkKind = Literal["c2pa", "text_watermark"]
ValidationState = Literal["trusted", "valid", "invalid", "not_present"]
OURS = "ttmark"
"""The scheme of results about the mark of this system's own keys."""


class UploadedFile(StrictModel):
    """A file in a form.

    Attributes:
        filename: None where the field was not sent as a file.
    """

    filename: Annotated[str, Field(max_length=256)] | None
    content: bytes


File = Annotated[
    UploadedFile, WithJsonSchema({"type": "string", "contentMediaType": "application/octet-stream"})
]


class FileForm(StrictModel):
    """A file whose text is wanted."""

    file: File = Field(
        description="Its bytes say of which kind it is; where they do not, the ending of its name."
    )


class CheckForm(FileForm):
    """A file, and how its text is asked about."""

    question: (
        Annotated[UploadedFile, WithJsonSchema({"type": "string", "contentMediaType": "application/json"})]
        | None
    ) = Field(
        default=None,
        description="Fields of `POST /v1/detect` but `inputs` and `conversation`, in JSON; with `mode` "
        "(`direct`, `aligned`, `localized`) those of that route.",
    )
    text: Annotated[UploadedFile, WithJsonSchema({"type": "string"})] | None = Field(
        default=None, description="Whatever it holds: `texts` have their text."
    )


class ProvenanceResult(AnswerModel):
    """What one kind of mark says. The first is C2PA's, of manifests in the file's text."""

    type: MarkKind
    outcome: Literal["detected", "not_detected"] = Field(
        description="Of `c2pa`: whether a trusted signer says that a model wrote the text, or a passage."
    )
    generated_at: str | None = Field(default=None, description="When, by the signer's own clock.")
    model: str | None = Field(
        default=None,
        description="By the signer; of a watermark that of the key's tokenizer, by its folder's name "
        "(scope detect:evidence).",
    )
    issuer: str | None = Field(default=None, description="Who signed the manifest.")
    validation_state: ValidationState = Field(
        default="not_present", description="Of the manifest; `not_present`, too, of a watermark."
    )
    scheme: str | None = left_out(f"Of a watermark: `{OURS}`, or the scheme of another system's keys.")
    key: DetectedKey | None = left_out("That was found (scope detect:evidence).")


class NotLookedAt(AnswerModel):
    """Something of the file that no outcome speaks of."""

    type: MarkKind
    scheme: str | None = left_out("As that of a result; left out: all of them.")
    name: str | None = left_out("Of the text, where the file holds several.")
    reason: str = Field(
        description="`too_short`, `no_key`, the code of an error, or in words why there is no text."
    )


class CheckedText(AnswerModel):
    """A text of the file: fields of `POST /v1/extract`, and what is found in it."""

    name: str | None = left_out("Of one of several.")
    title: str | None = left_out("Of a mail.")
    text: str | None = left_out("With `text`.")
    pages: list[int] | None = left_out("Of a PDF: where its pages begin, in characters.")
    recognised: bool | None = left_out("Whether a machine read pictures.")
    attachment: bool | None = left_out("Whether it came as a file with a mail.")
    unread: str | None = left_out("What could not be read, in words.")
    problem: str | None = left_out("Why there is no text.")
    result: CombinedResult | DetectionResult | None = left_out("That of `POST /v1/detect`.")


class ContentProvenanceCheck(AnswerModel):
    """The answer about a file."""

    object: Literal["content_provenance_check"] = "content_provenance_check"
    created_at: int = Field(description="Unix time in seconds.")
    results: list[ProvenanceResult] = Field(
        description="C2PA's, then one for our mark and one for each scheme of other systems' keys that the "
        "token may use, as far as they were looked for."
    )
    not_looked_at: list[NotLookedAt] = Field(description="What `results` say nothing of.")
    texts: list[CheckedText]
    skipped_keys: list[str] = Field(default=[], description="Keys not tried for want of their tokenizer.")
    request_id: str
