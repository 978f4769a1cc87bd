"""`/v1/queue`: documents that a team looks at, and what was decided about each."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from ttmark.shared.schemas.fields import AnswerModel, ProblemDocument, StrictModel, WholeNumber

QueueState = Literal["new", "looked_at", "decided", "appealed"]
QUEUE_STATES: tuple[QueueState, ...] = get_args(QueueState)
MOST_ITEMS = 100
LONGEST_NOTE = 1_000

ItemId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Note = Annotated[str, Field(max_length=LONGEST_NOTE)]


class ContentHash(StrictModel):
    """What a document holds, as in signed cases."""

    content: Literal["text", "token_ids"] = Field(
        description="`text`: in UTF-8; `token_ids`: in decimal, with commas between them."
    )
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class QueueEntry(StrictModel):
    """A document that is to be looked at, and what a check answered: never its text."""

    name: str = Field(min_length=1, max_length=256)
    document: ContentHash = Field(description="Two documents with one hash are one item.")
    verdict: Literal["watermarked", "not_detected", "too_short"]
    log10_p: float | None = Field(default=None, le=0, description="Where the check showed it.")
    case_id: ItemId | None = Field(default=None, description="The case, where the service keeps it.")
    note: Note = ""


class QueueChange(StrictModel):
    """Another state of an item, or a note on the one that it has."""

    id: ItemId
    version: Annotated[int, Field(ge=1), WholeNumber] = Field(description="Of the item as it was read.")
    state: QueueState
    note: Note = ""


class QueueStep(AnswerModel):
    """Who brought an item into a state. Times are Unix times in seconds."""

    state: QueueState
    token_id: str = Field(description="Of the access token.")
    at: float
    note: str


class QueueItem(AnswerModel):
    """An item of the queue."""

    id: str
    version: int
    state: QueueState
    name: str
    document: ContentHash
    verdict: str
    log10_p: float | None
    case_id: str | None
    steps: list[QueueStep] = Field(description="The newest is the last.")
    added_at: float
    expires_at: float = Field(description="When it is forgotten, if nobody changes it.")


class QueuePage(AnswerModel):
    """Items, the newest first."""

    items: list[QueueItem]
    next_offset: int | None = Field(description="Of the next page; null: this is the last.")


class QueueConflict(ProblemDocument):
    """Somebody else changed the item meanwhile."""

    present: QueueItem = Field(description="The item as it is now.")
