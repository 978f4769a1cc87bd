"""Settings of the detection service."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from ttmark.services.settings.base import ServiceSettings
from ttmark.services.settings.values import (
    Amount,
    AtOnce,
    Port,
    Seconds,
    Separated,
    TokenizerFolder,
)
from ttmark.services.state_folder import known_tokenizers


def _network(value: str) -> str:
    """A name, or `*`, would be believed from nobody, or from everybody."""
    try:
        ip_network(value)
    except ValueError:
        raise ValueError("each is an address, or a network such as 10.0.0.0/8") from None
    return value


Network = Annotated[str, AfterValidator(_network)]


def _split_folders(value: object) -> object:
    return tuple(part for part in value.split(":") if part) if isinstance(value, str) else value


class DetectionSettings(ServiceSettings):
    detect_port: Port = Field(default=8001, description="Port to listen on.")
    tokenizers: Annotated[tuple[TokenizerFolder, ...], NoDecode, BeforeValidator(_split_folders)] = Field(
        default=(),
        description="Folders with a tokenizer.json, separated by colons; empty: the demo model's and those "
        "under `models` in the state folder.",
    )
    key_max_age_seconds: Seconds = Field(
        default=86_400.0, description="How long known keys are used while the store is away."
    )
    requests_per_minute: Amount = Field(
        default=60_000, description="Requests of an access token in a minute, over all replicas; 0: any."
    )
    max_document_tokens: Amount = Field(default=100_000, gt=0, description="Longest document, in tokens.")
    max_request_blocks: Amount = Field(
        default=60_000_000,
        description="Most work of a request, in hashed blocks: 4 million take about a second; 0: any.",
    )
    blocks_per_minute: Amount = Field(
        default=600_000_000,
        description="Work of a tenant in a minute over all replicas, in hashed blocks; 0: any.",
    )
    max_queue: Amount = Field(
        default=64, gt=0, description="Requests of a tenant at a time before 429 is answered."
    )
    workers: AtOnce | None = Field(
        default=None, description="Threads for detection; empty: a core is left for the rest."
    )

    trusted_proxies: Annotated[tuple[Network, ...], *Separated] = Field(
        default=(),
        description="Addresses and networks of proxies, separated by commas, whose X-Forwarded-For "
        "says who asks.",
    )

    def tokenizer_folders(self) -> list[Path]:
        """The named folders, or those that are known without settings."""
        return list(self.tokenizers) or known_tokenizers(self.state)
