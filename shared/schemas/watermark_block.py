"""What a request can say about the watermark, and what each response says about it."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ttmark.shared.schemas.fields import ClosedPart, WholeNumber, is_none

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
        description="The key to watermark with; left out: the service's or the tenant's own.",
    )
    enabled: bool | None = Field(
        default=None, description="`false` needs the scope generate:unwatermarked; on by default."
    )
    content: Literal["code"] | None = Field(
        default=None,
        description="Says that the text is to be code, which a policy of the service may leave unmarked for "
        "tokens with that use.",
    )
    show_blocks: bool | None = Field(
        default=None,
        description="Adds to each piece of a streamed choice whether it is a block with the watermark.",
    )
    payload: Annotated[int, Field(ge=0), WholeNumber] | None = Field(
        default=None,
        description="A number that detection reads back from each completion, below the `payloads` of the "
        "key's profile (GET /v1/models). Needs the scope generate:payload and a key that takes payloads.",
    )
    manifest: bool | None = Field(
        default=None,
        description="Ends each completion in a C2PA manifest: invisible characters in which the service "
        "signs that a model wrote the text, which, and when. Needs a service with a certificate.",
    )


class Receipt(BaseModel):
    """How detectable one completion is, by its exact p-value under the key that marked it."""

    detectability: Detectability | None = Field(
        default=None,
        exclude_if=is_none,
        description="Whether direct detection with this key finds the text: `strong`: at a thousandth of "
        "the service's rate; `weak`: at the rate. Left out beside `response_format`, and where only "
        "detect:evidence may see it.",
    )
    log10_p: float | None = Field(
        default=None,
        exclude_if=is_none,
        description="The p-value's logarithm, for tokens with the scope detect:evidence; left out where "
        "nothing was to be marked.",
    )


class WatermarkBlock(Receipt):
    """Whether and how the completions of a response carry a watermark."""

    status: WatermarkStatus = Field(
        description="`watermarked`: every block that the scheme can mark is marked; `partial`: some are, "
        "`reasons` says why not all; `unwatermarked`: none is, `reasons` says why."
    )
    reasons: dict[str, int] = Field(
        description="Blocks without a mark by reason: opening, warm_up, odd_end, repeated_context, greedy, "
        "disabled, confined, policy."
    )
    policy: str | None = Field(
        default=None,
        exclude_if=is_none,
        description="The rule of the service's marking policy that decided; left out where none is for it.",
    )
    key_id: str | None = None
    key_version: int | None = None
    profile: str | None = None
    blocks: int = Field(description="Blocks of all completions of the response.")
    watermarked_blocks: int
    manifest: ManifestNote | None = Field(
        default=None,
        exclude_if=is_none,
        description="Where manifests were to be: `embedded`: each completion ends in one; `no_text`: but for "
        "those without text; `structured_output`: none does, because a program is to read the text.",
    )
    label: LabelNote | None = Field(
        default=None,
        exclude_if=is_none,
        description="Where the service's visible label stands in each completion that has text; "
        "`structured_output`: in none, because a program is to read the text.",
    )
    aigc: dict[str, str] | None = Field(
        default=None,
        exclude_if=is_none,
        description="Fields of the metadata `AIGC` (GB 45438-2025), for whoever writes the text into a file.",
    )
    choices: list[Receipt] | None = Field(
        default=None,
        exclude_if=is_none,
        description="Detectability of each choice, where there are several; that of the response is of the "
        "choice that is the hardest to detect.",
    )
