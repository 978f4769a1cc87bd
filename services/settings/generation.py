"""Settings of the generation service."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from ttmark.services.model_folder import check_model, is_folder
from ttmark.services.settings.base import ServiceSettings
from ttmark.services.settings.values import Amount, AtOnce, Port, Seconds, Separated
from ttmark.shared.schemas.detection.detect import DEFAULT_FPR
from ttmark.shared.schemas.fields import Rate
from ttmark.shared.vault.names import Name


def _split_models(value: object) -> object:
    if not isinstance(value, str):
        return value
    if is_folder(value):  # whose name may hold a comma
        return (value,)
    return tuple(part.strip() for part in value.split(",") if part.strip())


Model = Annotated[str, AfterValidator(check_model)]


class GenerationSettings(ServiceSettings):
    gen_port: Port = Field(default=8000, description="Port to listen on.")
    model: Annotated[tuple[Model, ...], NoDecode, BeforeValidator(_split_models)] = Field(
        default=(),
        description="`smollm2`, `demo`, a hub id or a model's folder; several, "
        "separated by commas; empty: `smollm2` where it lies in the state folder, else "
        "`demo`.",
    )
    default_key: Annotated[tuple[Name, ...], *Separated] = Field(
        default=(),
        description="Key id where a request names none; several, separated by commas, for several "
        "models; left out: the tenant's only key.",
    )
    opening_bits: float = Field(
        default=8.0,
        ge=0,
        le=100,
        description="Bits of surprise (-log2 of the tokens' probabilities) before an answer's first "
        "mark, so that answers to one question differ; none beside `response_format`. 0: none.",
    )
    detectability_fpr: Rate = Field(
        default=DEFAULT_FPR,
        description="False positive rate at which you detect, for `detectability`.",
    )
    detectability_for: Literal["everyone", "evidence"] = Field(
        default="everyone",
        description="Who is told how detectable an answer is; `evidence`: tokens with detect:evidence.",
    )
    key_max_age_seconds: Seconds = Field(
        default=900.0, description="How long known keys are used while the store is away."
    )
    requests_per_minute: Amount = Field(
        default=3_000, description="Requests of an access token in a minute, over all replicas; 0: any."
    )
    tokens_per_minute: Amount = Field(
        default=1_000_000,
        description="Tokens of an access token's prompts and completions in a minute over all "
        "replicas; 0: any.",
    )
    engine: Literal["embedded", "vllm"] = Field(
        default="embedded",
        description="What runs the model: `embedded`, or `vllm` where vLLM 0.32.0 or 0.33.0 is installed.",
    )
    max_concurrency: AtOnce = Field(default=32, description="Sequences that run at the same time.")
    max_queue: Amount = Field(default=128, description="Requests that may wait before 429 is answered.")
    max_branches: AtOnce = Field(
        default=8,
        description="Candidates that are probed together; more cost time, 2 lose half of the evidence.",
    )
    reproducible: bool = Field(
        default=False,
        description=(
            "Give a seed the same text under any load, at some cost, on a CPU in `float32` or with matrices "
            "of 4 or 8 bits."
        ),
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="Number format of the model."
    )
    quantization: Literal["auto", "int4", "int8", "none"] = Field(
        default="auto",
        description="Bits of matrices on a CPU; `auto`: 4 where a model's numbers are of so many already.",
    )
    threads: AtOnce | None = Field(
        default=None,
        description=(
            "CPU threads; empty: one or all, measured at start. Only a fixed number, with `float32`, "
            "gives a seed the same text at every start."
        ),
    )
    control_tokens: Literal["text", "refuse", "control"] = Field(
        default="text",
        description="Control tokens such as `<|im_end|>` in a message are read as `text`, `refuse` "
        "makes them a 400, and with `control` they work, so that a user can pose as the "
        "system.",
    )
    generation_defaults: Literal["model", "openai"] = Field(
        default="model",
        description="Sampling where a request names none: `model`: as the model's "
        "`generation_config.json` says; `openai`: temperature 1 alone.",
    )
    unknown_fields: Literal["refuse", "ignore"] = Field(
        default="refuse",
        description="Unknown fields: `refuse`: 400; `ignore`: the header `Warning` lists them. In "
        "`watermark` they are always refused.",
    )
    request_seconds: Seconds = Field(
        default=600.0, description="Time for a completion, waiting included, before 503 is answered."
    )
