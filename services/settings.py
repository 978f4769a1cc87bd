"""The settings of both services, from environment variables `TTMARK_*`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from ttmark.services.model_folder import check_model, is_folder
from ttmark.services.origins import Origins
from ttmark.services.settings_cases import CaseSettings
from ttmark.services.settings_extraction import ExtractionSettings
from ttmark.services.settings_jobs import JobSettings
from ttmark.services.settings_labels import AigcSettings, LabelSettings
from ttmark.services.settings_manifests import SigningSettings, TrustSettings
from ttmark.services.settings_oidc import OidcSettings
from ttmark.services.settings_policy import PolicySettings
from ttmark.services.settings_public import PublicSettings
from ttmark.services.settings_queue import QueueSettings
from ttmark.services.settings_reader import ReaderSettings
from ttmark.services.settings_reading import Settings
from ttmark.services.settings_values import (
    Amount,
    AtOnce,
    Folder,
    Host,
    Port,
    ReadableFile,
    Seconds,
    Separated,
    WebAddress,
)
from ttmark.services.state_folder import STATE_FOLDER, STATE_MEANING, known_tokenizers, with_tokenizer
from ttmark.shared.schemas.detection import DEFAULT_FPR
from ttmark.shared.vault.names import Name


def _split_models(value: object) -> object:
    if not isinstance(value, str):
        return value
    if is_folder(value):  # whose name may hold a comma
        return (value,)
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _split_folders(value: object) -> object:
    return tuple(part for part in value.split(":") if part) if isinstance(value, str) else value


Model = Annotated[str, AfterValidator(check_model)]
TokenizerFolder = Annotated[Path, AfterValidator(with_tokenizer)]


class ServiceSettings(Settings):
    """What both services share."""

    host: Host = Field(default="127.0.0.1", description="Address to listen on.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least severe log events that are written."
    )
    state: Folder = Field(default=STATE_FOLDER, description=STATE_MEANING)
    key_refresh_seconds: Seconds = Field(
        default=15.0, description="How often keys are read again from the store."
    )
    token_refresh_seconds: Seconds = Field(
        default=2.0,
        description="How often an access token in use is checked again: how soon a revocation counts.",
    )
    replica_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Name under which this replica reports the key versions that it knows; should survive a "
        "restart. Left out: service, host and port.",
    )
    header_seconds: Seconds = Field(
        default=10.0, description="Time from a connection to the end of a request's headers."
    )
    body_seconds: Seconds = Field(
        default=30.0, description="Time from a request's headers to the end of its body."
    )
    max_connections: Amount = Field(
        default=4096,
        ge=1,
        description="Open connections; a further one replaces the oldest without a request, or an idle one.",
    )
    max_body_bytes: Amount = Field(default=8 * 2**20, ge=1, description="Largest request body.")
    cors_origins: Origins = Field(
        default=(),
        description="Origins of web pages that may call from a browser (CORS), separated by commas, such as "
        "`https://app.example.org`; `*`: any; left out: none.",
    )
    drain_delay_seconds: float = Field(
        default=0.0,
        ge=0,
        le=3_600,
        description="Time after SIGTERM for which requests are still taken on, while `/readyz` answers 503: "
        "until load balancers have seen it. 0 where they are told before, as by `preStop` of Kubernetes.",
    )
    drain_seconds: Seconds = Field(
        default=30.0, description="Time for running requests after SIGTERM and that delay."
    )
    traces_endpoint: WebAddress | None = Field(
        default=None,
        description="OTLP collector, such as http://collector:4318/v1/traces; left out: no tracing.",
    )


class GenerationSettings(AigcSettings, PolicySettings, SigningSettings, ServiceSettings):
    """Settings of the generation service."""

    gen_port: Port = Field(default=8000, description="Port to listen on.")
    model: Annotated[tuple[Model, ...], NoDecode, BeforeValidator(_split_models)] = Field(
        default=(),
        description="`smollm2`, `demo`, a hub id or a folder with a causal language model; several, "
        "separated by commas, are served side by side; empty: `smollm2` where it lies in the state folder, "
        "else `demo`.",
    )
    default_key: Annotated[tuple[Name, ...], *Separated] = Field(
        default=(),
        description="Key id used when a request names none; several models may need several, separated by "
        "commas; left out: the tenant's only key.",
    )
    opening_bits: float = Field(
        default=8.0,
        ge=0,
        le=100,
        description="Surprise of an answer (-log2 of its tokens' probabilities) before its first mark, so "
        "that answers to one question differ; at most a bit for every four tokens of its limit, none "
        "beside `response_format`. 0: none.",
    )
    detectability_fpr: float = Field(
        default=DEFAULT_FPR,
        ge=1e-100,
        le=0.1,
        description="False positive rate at which answers are called detectable: that of your detection.",
    )
    detectability_for: Literal["everyone", "evidence"] = Field(
        default="everyone",
        description="Who is told how detectable an answer is: every caller, or tokens with detect:evidence.",
    )
    key_max_age_seconds: Seconds = Field(
        default=900.0,
        description="How long generation goes on with known keys while the store is away.",
    )
    requests_per_minute: Amount = Field(
        default=3_000,
        description="Requests of an access token in a minute, over all replicas; 0: any.",
    )
    tokens_per_minute: Amount = Field(
        default=1_000_000,
        description="Tokens of prompts and completions of an access token in a minute, over all replicas; "
        "0: any.",
    )
    engine: Literal["embedded", "vllm"] = Field(
        default="embedded",
        description="What runs the model: `embedded`, or `vllm` where vLLM 0.32.0 is installed.",
    )
    engine_file: ReadableFile | None = Field(
        default=None,
        description="With `vllm`: a YAML file with further arguments for it, in vLLM's own names, such as "
        "`tensor_parallel_size: 2`.",
    )
    max_concurrency: AtOnce = Field(default=32, description="Sequences that run at the same time.")
    max_queue: Amount = Field(default=128, description="Requests that may wait before 429 is answered.")
    reading_share: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="What texts that are only read, by `POST /v1/readings` and by verification, may take "
        "beside texts that are written: rows of computation for each of theirs, and a share of the places.",
    )
    max_branches: AtOnce = Field(
        default=8,
        description="Candidates of a block level that are probed together; more cost rows, on a CPU time.",
    )
    adaptive_branches: bool = Field(
        default=False,
        description=(
            "Probe fewer candidates while many sequences run, down to what costs next to nothing; the text "
            "of a seed then depends on the load."
        ),
    )
    prefix_cache: bool = Field(
        default=True,
        description="Keep prompts in the cache and reuse their beginnings, such as a system prompt or the "
        "earlier turns of a conversation, for the same tenant; they yield to any request that needs room.",
    )
    reproducible: bool = Field(
        default=False,
        description="Give a seed the same text whatever else the service is doing, on a CPU in `float32`; "
        "passes then take more rows.",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="Number format of the model."
    )
    threads: AtOnce | None = Field(
        default=None,
        description=(
            "CPU threads; empty: one or all, measured at start. A seed gives the same text at every start "
            "with `float32` and a fixed number of threads only."
        ),
    )
    control_tokens: Literal["text", "refuse", "control"] = Field(
        default="text",
        description="What becomes of control tokens such as `<|im_end|>` that a message spells out: `text`: "
        "they are read as ordinary text; `refuse`: the request gets a 400; `control`: they work, so that a "
        "user's message can pose as the system's.",
    )
    reasoning: Literal["auto", "think", "none"] = Field(
        default="auto",
        description="In which tags models reason before they answer, so that their answers have it "
        "apart: `auto`: as each chat template knows them; `think`: `<think>` and `</think>`; `none`: such "
        "tags are text.",
    )
    generation_defaults: Literal["model", "openai"] = Field(
        default="model",
        description="What holds where a request names no temperature, top-p, top-k, min-p or repetition "
        "penalty: `model`: what the model's `generation_config.json` says; `openai`: temperature 1 alone.",
    )
    unknown_fields: Literal["refuse", "ignore"] = Field(
        default="refuse",
        description="What becomes of a field that nobody knows: `refuse`: the request gets a 400 that names "
        "it; `ignore`: the answer lists it in the header `Warning`. In `watermark` they are refused in any "
        "case.",
    )
    playground: bool = Field(
        default=False,
        description="Serve a page at `/playground` on which people with an access token watch a text being "
        "written.",
    )
    console_url: WebAddress = Field(
        default="http://127.0.0.1:8001",
        description="Address of the detection service, as browsers reach it: the playground hands texts over "
        "to its console.",
    )
    request_seconds: Seconds = Field(
        default=600.0, description="Time for a completion, waiting included, before 503 is answered."
    )


class DetectionSettings(
    CaseSettings,
    QueueSettings,
    ExtractionSettings,
    JobSettings,
    LabelSettings,
    OidcSettings,
    PublicSettings,
    ReaderSettings,
    TrustSettings,
    ServiceSettings,
):
    """Settings of the detection service."""

    detect_port: Port = Field(default=8001, description="Port to listen on.")
    tokenizers: Annotated[tuple[TokenizerFolder, ...], NoDecode, BeforeValidator(_split_folders)] = Field(
        default=(),
        description="Folders with a tokenizer.json, separated by colons; empty: the demo model's and those "
        "under `models` in the state folder.",
    )
    key_max_age_seconds: Seconds = Field(
        default=86_400.0,
        description="How long detection goes on with known keys while the store is away.",
    )
    requests_per_minute: Amount = Field(
        default=60_000,
        description="Requests of an access token in a minute, over all replicas; 0: any.",
    )
    documents_per_minute: Amount = Field(
        default=600_000, description="Documents of an access token in a minute, over all replicas; 0: any."
    )
    answers_per_passage: int = Field(
        default=12,
        ge=0,
        le=250,
        description="Answers about the same context and block that a tenant's tokens without detect:evidence "
        "may have in half of TTMARK_ANSWERS_WINDOW_SECONDS; then it counts no more. 0: any.",
    )
    answers_window_seconds: Seconds = Field(
        default=86_400.0,
        description="Time after which answers to tokens without detect:evidence, and public ones, are "
        "forgotten.",
    )
    chance_findings: float = Field(
        default=0.1,
        ge=0,
        le=1e6,
        description="False findings that the questions of a token without detect:evidence, in half of "
        "TTMARK_ANSWERS_WINDOW_SECONDS, may be expected to give, by their `fpr`: "
        "0.1 are 10 documents at 1e-2, 100 at 1e-3, 10,000 at 1e-5; 0: any.",
    )
    max_document_tokens: Amount = Field(default=100_000, ge=1, description="Longest document, in tokens.")
    max_request_blocks: Amount = Field(
        default=60_000_000,
        description="Most work of a request, in hashed blocks: 4 million are about a second of a core; "
        "0: any.",
    )
    blocks_per_minute: Amount = Field(
        default=600_000_000,
        description="Work of a tenant in a minute, in hashed blocks, over all replicas; 0: any.",
    )
    max_queue: Amount = Field(
        default=64,
        ge=1,
        description="Requests of a tenant that may be worked on or wait for it before 429 is answered.",
    )
    workers: AtOnce | None = Field(
        default=None, description="Threads for detection; empty: a core is left for the rest."
    )

    def tokenizer_folders(self) -> list[Path]:
        """The named folders, or those that are known without settings."""
        return list(self.tokenizers) or known_tokenizers(self.state)
