"""What a request can say about the watermark, and what each response says about it."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ttmark.shared.schemas.fields import ClosedPart, WholeNumber, left_out

WatermarkStatus = Literal["watermarked", "partial", "unwatermarked"]
Detectability = Literal["strong", "weak", "none"]
ManifestNote = Literal["embedded", "no_text", "structured_output"]
LabelNote = Literal["start", "end", "structured_output"]


class WatermarkOptions(ClosedPart):
    """The `watermark` field of a generation request."""

    key_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="The key to mark with; left out: the service's or the tenant's own.",
    )
    enabled: bool | None = Field(
        default=None, description="`false` needs the scope generate:unwatermarked; on by default."
    )
    content: Literal["code"] | None = Field(
        default=None, description="The text is to be code, for the service's policy."
    )
    show_blocks: bool | None = Field(
        default=None, description="Adds to each piece of a stream whether it is a marked block."
    )
    payload: Annotated[int, Field(ge=0), WholeNumber] | None = Field(
        default=None,
        description="A number below the profile's `payloads`, which detection reads back. Needs the "
        "scope generate:payload.",
    )
    manifest: bool | None = Field(
        default=None,
        description="Ends each completion in a C2PA manifest. Needs a service with a certificate.",
    )


class Receipt(BaseModel):
    """How detectable one completion is, by its exact p-value under the key that marked it."""

    detectability: Detectability | None = left_out(
        "Whether direct detection finds the text at a thousandth of the service's rate, "
        "`strong`, or at the rate, `weak`. Left out beside `response_format`."
    )
    log10_p: float | None = left_out("The p-value's logarithm, for tokens with detect:evidence.")


class WatermarkBlock(Receipt):
    """Whether and how the completions of a response carry a watermark."""

    status: WatermarkStatus = Field(
        description="`watermarked`: every block that can be marked is; `partial`: some are; "
        "`unwatermarked`: none is."
    )
    reasons: dict[str, int] = Field(
        description="Blocks without a mark by reason: `opening`, `warm_up`, `odd_end`, `repeated_context`, "
        "`greedy`, `disabled`, `confined`, `policy`."
    )
    policy: str | None = left_out("The rule of the marking policy that decided.")
    key_id: str | None = None
    key_version: int | None = None
    profile: str | None = None
    blocks: int = Field(description="Blocks of all completions of the response.")
    watermarked_blocks: int
    manifest: ManifestNote | None = left_out(
        "`embedded`: each completion ends in a manifest; `no_text`: but for those "
        "without text; `structured_output`: none does."
    )
    label: LabelNote | None = left_out(
        "Where the visible label stands; `structured_output`: in no completion."
    )
    aigc: dict[str, str] | None = left_out("Metadata `AIGC` (GB 45438-2025).")
    choices: list[Receipt] | None = left_out(
        "Of each of several choices; the response has that of the hardest to detect."
    )
