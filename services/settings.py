"""The settings of both services, from environment variables `TTMARK_*`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class ServiceSettings(BaseSettings):
    """What both services share."""

    model_config = SettingsConfigDict(env_prefix="TTMARK_", extra="ignore", frozen=True)

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least severe log events that are written."
    )
    key_refresh_seconds: float = Field(
        default=15.0, gt=0, description="How often keys are read again from the store."
    )
    token_refresh_seconds: float = Field(
        default=2.0,
        gt=0,
        description="How often an access token in use is checked again: how soon a revocation counts.",
    )
    replica_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Name under which this replica reports the key versions that it knows; should survive a "
        "restart. Left out: service, host and port.",
    )
    max_body_bytes: int = Field(default=8 * 2**20, gt=0, description="Largest request body.")
    traces_endpoint: str | None = Field(
        default=None,
        description="OTLP collector, such as http://collector:4318/v1/traces; left out: no tracing.",
    )


class GenerationSettings(ServiceSettings):
    """Settings of the generation service."""

    gen_port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on.")
    model: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("demo",),
        min_length=1,
        description="`demo`, a hub id or a folder with a causal language model; several, separated by "
        "commas, are served side by side.",
    )
    default_key: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Key id used when a request names none; several models may need several, separated by "
        "commas; left out: the tenant's only key.",
    )
    key_max_age_seconds: float = Field(
        default=900.0,
        gt=0,
        description="How long generation goes on with known keys while the store is away.",
    )
    requests_per_minute: int = Field(
        default=3_000,
        ge=0,
        description="Requests of an access token in a minute, over all replicas; 0: any.",
    )
    tokens_per_minute: int = Field(
        default=1_000_000,
        ge=0,
        description="Tokens of prompts and completions in a minute, likewise; 0: any.",
    )
    max_concurrency: int = Field(default=32, ge=1, description="Sequences that run at the same time.")
    max_queue: int = Field(default=128, ge=0, description="Requests that may wait before 429 is answered.")
    max_branches: int = Field(
        default=8,
        ge=1,
        description="Candidates of a block level that are probed together; more cost rows, on a CPU time.",
    )
    adaptive_branches: bool = Field(
        default=False,
        description=(
            "Probe fewer candidates while many sequences run, down to what costs next to nothing; the text "
            "of a seed then depends on the load."
        ),
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="Number format of the model."
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        description=(
            "CPU threads; empty: one or all, measured at start. A seed gives the same text at every start "
            "with `float32` and a fixed number of threads only."
        ),
    )
    request_seconds: float = Field(
        default=600.0, gt=0, description="Time for a completion, waiting included, before 503 is answered."
    )
    drain_seconds: float = Field(default=30.0, gt=0, description="Time for running requests after SIGTERM.")

    @field_validator("model", "default_key", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        if not isinstance(value, str) or Path(value).is_dir():
            return value if not isinstance(value, str) else (value,)
        return tuple(part.strip() for part in value.split(",") if part.strip())


class DetectionSettings(ServiceSettings):
    """Settings of the detection service."""

    detect_port: int = Field(default=8001, ge=0, le=65535, description="Port to listen on.")
    tokenizers: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(), description="Folders with a tokenizer.json, separated by colons; empty: the demo model's."
    )
    key_max_age_seconds: float = Field(
        default=86_400.0,
        gt=0,
        description="How long detection goes on with known keys while the store is away.",
    )
    requests_per_minute: int = Field(
        default=60_000,
        ge=0,
        description="Requests of an access token in a minute, over all replicas; 0: any.",
    )
    documents_per_minute: int = Field(
        default=600_000,
        ge=0,
        description="Documents in a minute, likewise; 0: any.",
    )
    variants_per_document: int = Field(
        default=50,
        ge=0,
        description="Almost equal documents that an access token may send until it has to pause; 0: any.",
    )
    variants_pause_seconds: float = Field(default=600.0, gt=0, description="Length of that pause.")
    max_document_tokens: int = Field(default=100_000, ge=1, description="Longest document, in tokens.")

    @field_validator("tokenizers", mode="before")
    @classmethod
    def _split_folders(cls, value: object) -> object:
        return tuple(part for part in value.split(":") if part) if isinstance(value, str) else value
