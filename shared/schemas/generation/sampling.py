"""The fields that all generation requests have in common. Null means the same as leaving a field out."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ttmark.shared.schemas.fields import (
    Ignored,
    NonEmptyText,
    NotTaken,
    OnlyFalse,
    OnlyTrue,
    RequestPart,
    TokenId,
    WholeNumber,
    WholeNumbers,
    says,
)
from ttmark.shared.schemas.generation.watermark_block import WatermarkOptions
from ttmark.shared.schemas.slices import few


class SamplingDefaults(BaseModel):
    """A model's sampling where a request does not name it, field by field; without arguments OpenAI's."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    temperature: float = Field(default=1.0, gt=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1, description="1: off.")
    top_k: Annotated[int, Field(ge=0, le=2**31 - 1), WholeNumber] = Field(default=0, description="0: off.")
    min_p: float = Field(default=0.0, ge=0, le=1, description="0: off.")
    repetition_penalty: float = Field(default=1.0, ge=1, le=2, description="1: off.")
    max_new_tokens: Annotated[int, Field(ge=1, le=2**31 - 1), WholeNumber] | None = Field(
        default=None,
        description="Tokens of an answer where no limit is named; null: what the context leaves.",
    )

    def under(self, request: BaseModel) -> dict[str, Any]:
        """The five values of a request, with the default where it has null; a `top_k` of -1 becomes 0."""
        values = self.model_dump(exclude={"max_new_tokens"})
        named = {name: value for name in values if (value := getattr(request, name)) is not None}
        values |= named
        return values | {"top_k": max(0, values["top_k"])}

    def answer_tokens(self, room: int) -> int:
        """Tokens that an answer may have where its request names no limit and the context leaves `room`."""
        return min(room, self.max_new_tokens or room)


MAX_CHOICE_TEXTS = 1024
Schema = Annotated[
    str | dict[str, Any], Field(description="JSON that is valid against a schema; the schema may be a text.")
]
Regex = Annotated[NonEmptyText, Field(description="The whole text matches a regular expression.")]
Choice = Annotated[
    list[NonEmptyText],
    Field(min_length=1, max_length=MAX_CHOICE_TEXTS, fail_fast=True, description="One of these texts."),
]
LarkGrammar = Annotated[NonEmptyText, Field(description="A grammar in llguidance's Lark, or in GBNF.")]


class StructuredOutputs(RequestPart):
    """What the text is held to: exactly one of `json`, `regex`, `choice`, `grammar` and `json_object`."""

    json_schema: Schema | None = Field(default=None, alias="json")
    regex: Regex | None = None
    choice: Choice | None = None
    grammar: LarkGrammar | None = None
    json_object: OnlyTrue = None
    structural_tag: NotTaken = None
    whitespace_pattern: NotTaken = None
    disable_additional_properties: OnlyFalse = None
    disable_any_whitespace: Ignored = None
    disable_fallback: Ignored = None


MAX_CHOICES = 16
MAX_STOPS = 4
MAX_LOGIT_BIASES = 1024
MAX_STOP_TOKENS = 128
MAX_BAD_WORDS = 128
MAX_BAD_WORD = 200
BY_DEFAULT = "By default the model's own."

Stop = Annotated[
    NonEmptyText | Annotated[list[NonEmptyText], Field(max_length=MAX_STOPS)] | None,
    says(f"must be a non-empty string, or a list of at most {MAX_STOPS} of them"),
]
LogitBias = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[0-9]{1,10}$")],
        Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)],
    ],
    # The pattern alone would let any other key through, with any value.
    Field(max_length=MAX_LOGIT_BIASES, json_schema_extra={"additionalProperties": False}),
    few(MAX_LOGIT_BIASES),
    says(f"must map at most {MAX_LOGIT_BIASES} token ids to numbers between -100 and 100"),
]


class StreamOptions(RequestPart):
    """What a stream contains besides the text."""

    include_usage: bool | None = Field(default=None, description="Ends the stream with token counts.")
    continuous_usage_stats: OnlyFalse = None
    include_obfuscation: Ignored = None


class SamplingFields(RequestPart):
    """Model, decoding parameters, streaming, watermark."""

    model_config = ConfigDict(allow_inf_nan=False)

    model: str = Field(min_length=1, max_length=512, description="As GET /v1/models lists it.")
    temperature: float | None = Field(default=None, ge=0, le=2, description=f"0 is greedy. {BY_DEFAULT}")
    top_p: float | None = Field(default=None, gt=0, le=1, description=f"1: off. {BY_DEFAULT}")
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1), WholeNumber] | None = Field(
        default=None, description=f"0 and -1: off. {BY_DEFAULT}"
    )
    min_p: float | None = Field(default=None, ge=0, le=1, description=f"0: off. {BY_DEFAULT}")
    stop: Stop = Field(default=None, description="Strings that end a completion; not part of it.")
    stop_token_ids: (
        Annotated[list[TokenId], Field(max_length=MAX_STOP_TOKENS, fail_fast=True), WholeNumbers] | None
    ) = Field(default=None, description="Tokens that end a completion.")
    min_tokens: Annotated[int, Field(ge=0, le=2**31 - 1), WholeNumber] | None = Field(
        default=None, description="Tokens before anything ends a completion."
    )
    bad_words: (
        Annotated[
            list[Annotated[str, Field(max_length=MAX_BAD_WORD, pattern="[^ ]")]],
            Field(max_length=MAX_BAD_WORDS, fail_fast=True),
        ]
        | None
    ) = Field(default=None, description="Words that a completion may not have, after a blank or not.")
    seed: Annotated[int, WholeNumber] | None = Field(
        default=None,
        description="The same seed gives the same completion; beside other requests only with "
        "TTMARK_REPRODUCIBLE.",
    )
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    repetition_penalty: float | None = Field(
        default=None,
        ge=1,
        le=2,
        description="Divides the logits above 0 of tokens that are there already, and multiplies the "
        f"others. 1: off. {BY_DEFAULT}",
    )
    logit_bias: LogitBias | None = Field(default=None, description="Token id to what is added to its logit.")
    stream: bool | None = Field(default=None, description="Server-sent events instead of one JSON object.")
    user: str | None = Field(default=None, description="Accepted and not looked at.")
    ignore_eos: bool | None = Field(default=None, description="Goes on past the end of text.")
    return_token_ids: bool | None = Field(
        default=None, description="Adds `token_ids` and `prompt_token_ids` to each choice."
    )
    watermark: WatermarkOptions | None = None
    store: OnlyFalse = None
    skip_special_tokens: OnlyTrue = None
    spaces_between_special_tokens: OnlyTrue = None
    include_stop_str_in_output: OnlyFalse = None
    metadata: Ignored = None
    prompt_cache_key: Ignored = None
    prompt_cache_options: Ignored = None
    prompt_cache_retention: Ignored = None
    safety_identifier: Ignored = None
    service_tier: Ignored = None
    request_id: Ignored = None
    priority: Ignored = None
    cache_salt: Ignored = None


OPTIONAL_FIELDS = (
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "response_format",
    "structured_outputs",
    "tool_choice",
    "tools",
    "watermark.manifest",
)
"""Fields of requests that ask for an optional feature, which a service may not have."""


class ChoiceFields(SamplingFields):
    """What the two APIs that answer with choices add to them."""

    n: Annotated[int, Field(ge=1, le=MAX_CHOICES), WholeNumber] | None = Field(
        default=None, description="Completions of each prompt."
    )
    stream_options: StreamOptions | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Schema | None = None
    guided_regex: Regex | None = None
    guided_choice: Choice | None = None
    guided_grammar: LarkGrammar | None = None
    guided_whitespace_pattern: NotTaken = None
    guided_decoding_backend: Ignored = None

    @property
    def choices(self) -> int:
        """Completions of each prompt."""
        return self.n or 1

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)


class PromptTokensDetails(BaseModel):
    """Prompt tokens that were found in the cache and not computed again, for any completion."""

    cached_tokens: int = 0


class CompletionTokensDetails(BaseModel):
    """Tokens of completions that are reasoning, and not of the answer."""

    reasoning_tokens: int = 0


class Usage(BaseModel):
    """Token counts of a response; a prompt counts once, however many completions it has."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails = Field(default_factory=PromptTokensDetails)
    completion_tokens_details: CompletionTokensDetails = Field(default_factory=CompletionTokensDetails)
