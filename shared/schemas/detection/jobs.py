"""Detection jobs: thousands of documents that are answered in the background."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from ttmark.shared.schemas.detection.detect import (
    DEFAULT_BETA,
    DEFAULT_FPR,
    REQUESTS,
    CombinedResult,
    DetectionRequest,
    DetectionResult,
    Document,
    DocumentError,
    KeyId,
    Phase,
)
from ttmark.shared.schemas.fields import AnswerModel, InSlices, NoTruthValue, Rate, StrictModel

MOST_DOCUMENTS = 100_000
MOST_RESULTS = 1_000
JobMode = Literal["combined", "direct", "aligned", "localized"]

_OWN_OPTIONS = {"direct": "phase", "aligned": "beta", "localized": "method"}
_AS_A_SCHEMA: list[JsonValue] = [
    {
        "anyOf": [
            {"required": ["mode"], "properties": {"mode": {"const": mode}}},
            {"properties": {option: False}},
        ]
    }
    for mode, option in _OWN_OPTIONS.items()
]


class JobOptions(StrictModel):
    """What a job asks of each document: the options of the mode's route, without block evidence."""

    model_config = ConfigDict(json_schema_extra={"allOf": _AS_A_SCHEMA})

    mode: JobMode = "combined"
    keys: Annotated[list[KeyId], Field(min_length=1, max_length=256)] | None = None
    fpr: Rate = DEFAULT_FPR
    normalize: bool = True
    phase: Annotated[Phase, NoTruthValue] | None = Field(default=None, description="With `direct` alone.")
    beta: Annotated[float, Field(ge=0, le=100)] = Field(
        default=DEFAULT_BETA, description="With `aligned` alone."
    )
    method: Literal["scan", "waterseeker"] = Field(default="scan", description="With `localized` alone.")
    webhook: Annotated[str, Field(max_length=2_000)] | None = Field(
        default=None,
        description="Address that is told by a signed POST when the job is finished, at a host that "
        "the operator has listed.",
    )

    @model_validator(mode="after")
    def _options_of_the_mode(self) -> Self:
        for mode, option in _OWN_OPTIONS.items():
            if mode != self.mode and option in self.model_fields_set:
                raise ValueError(f"`{option}` is an option of the mode `{mode}`")
        return self

    def request(self, documents: list[Document]) -> DetectionRequest:
        """The request of the mode's route for some of the documents, be they more than a request may have."""
        kind = REQUESTS[self.mode]
        named = (self.model_fields_set & kind.model_fields.keys()) - {"inputs"}
        return kind.model_construct(
            _fields_set=named | {"inputs"}, inputs=documents, **{name: getattr(self, name) for name in named}
        )


class JobRequest(JobOptions):
    """A job: its documents and what is asked of each."""

    inputs: Annotated[list[Document], Field(min_length=1, max_length=MOST_DOCUMENTS), InSlices]

    def options(self) -> JobOptions:
        """All but the documents."""
        return JobOptions.model_construct(
            _fields_set=self.model_fields_set - {"inputs"},
            **{name: getattr(self, name) for name in JobOptions.model_fields},
        )


class JobStatus(AnswerModel):
    """Where a job is. Times are Unix times in seconds."""

    id: str
    status: Literal["queued", "running", "finished"]
    mode: JobMode
    documents: int
    answered: int = Field(description="Documents with a result, be it an error.")
    failed: int = Field(description="Documents among them whose result is an error.")
    created_at: float
    finished_at: float | None = None
    expires_at: float = Field(description="When the job and its results are forgotten, finished or not.")


class JobResult(AnswerModel):
    """The answer for one document: a result, or an error."""

    index: int = Field(description="Of the document in the job's `inputs`.")
    id: str = Field(description="The document's id; its index where it has none.")
    result: DetectionResult | CombinedResult | None = None
    error: DocumentError | None = None


class JobResults(AnswerModel):
    """Some of a job's results, in the order of the documents."""

    results: list[JobResult]
    next_offset: int | None = Field(description="`offset` of the next page; null: there is none.")
    status: Literal["queued", "running", "finished"]
