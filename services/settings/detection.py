"""Settings of the detection service and of the model that reads along."""

import ssl
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from ttmark.services.model_folder import model_id
from ttmark.services.settings.base import ServiceSettings, Settings
from ttmark.services.settings.cases_and_jobs import CaseSettings
from ttmark.services.settings.provenance import LabelSettings, TrustSettings
from ttmark.services.settings.values import (
    Amount,
    AtOnce,
    Port,
    ReadableFile,
    Seconds,
    Separated,
    TokenizerFolder,
    WebAddress,
)
from ttmark.services.startup import StartupError
from ttmark.services.state_folder import known_tokenizers
from ttmark.shared.limits.counting_filter import MOST_ANSWERS

if TYPE_CHECKING:
    from ttmark.detect_service.features.reader.dialect import Dialect
    from ttmark.detect_service.features.reader.reader_client import ReaderClient


class ReaderSettings(Settings):
    """Where texts are read along, and how."""

    reader_url: WebAddress | None = Field(
        default=None, description="Address of the language model that reads texts along; left out: none."
    )
    reader_model: str = Field(
        default="", max_length=512, description="The reader's model, by its name there; of several the first."
    )
    reader_token: SecretStr | None = Field(
        default=None, description="Access token for the reader; a generation service asks for the scope read."
    )
    reader_token_file: Path | None = Field(
        default=None,
        description="File with the reader's token, unless TTMARK_READER_TOKEN is set; missing or "
        "empty: nothing is read.",
    )
    reader_timeout_seconds: Seconds = Field(
        default=5.0, description="How long a request waits for the reader."
    )
    reader_tokenizer: TokenizerFolder | None = Field(
        default=None,
        description="Folder with the tokenizer.json of the reader's model, where the reader is a vLLM "
        "server. Left out: it is a generation service.",
    )
    reader_context_tokens: int = Field(
        default=2_048,
        ge=16,
        le=1_000_000,
        description="With a vLLM server: tokens read together, one less than the server's limit.",
    )
    reader_ca_file: ReadableFile | None = Field(
        default=None, description="PEM file with the certificates that the reader's is held against."
    )
    reader_anywhere: bool = Field(
        default=False, description="Send texts to readers at public addresses, too."
    )

    def open_reader(self) -> "ReaderClient | None":
        """The reader's client; None: there is no reader.

        Raises:
            StartupError: settings that go together are not complete, or the address is not allowed.
        """
        from ttmark.detect_service.features.reader.dialect import ReaderElsewhere
        from ttmark.detect_service.features.reader.reader_client import (
            ReaderClient,  # settings load without the service
        )

        if self.reader_url is None:
            return None
        token = None if self.reader_token is None else self.reader_token.get_secret_value()
        if token is None and self.reader_token_file is not None:
            token = self.text_of("reader_token_file") if self.reader_token_file.exists() else ""
            if not token:
                return None
            if len(token.split()) > 1:
                raise StartupError("TTMARK_READER_TOKEN_FILE: the file holds more than a token")
        try:
            return ReaderClient(
                self.reader_url,
                self._dialect(),
                token=token,
                timeout_seconds=self.reader_timeout_seconds,
                anywhere=self.reader_anywhere,
                tls=self._tls(),
            )
        except ReaderElsewhere as error:
            raise StartupError(f"TTMARK_READER_URL: {error}; TTMARK_READER_ANYWHERE=true allows it") from None

    def _dialect(self) -> "Dialect":
        from ttmark.detect_service.features.reader.dialect import ttmark_dialect
        from ttmark.detect_service.features.reader.vllm_dialect import vllm_dialect
        from ttmark.shared.tokenization import TextTokenizer

        if not self.reader_model:
            raise StartupError(
                "TTMARK_READER_URL needs TTMARK_READER_MODEL: the name of the model that reads"
            )
        if self.reader_tokenizer is None:
            # As TTMARK_MODEL has it too, so that one value serves both.
            return ttmark_dialect(model_id(self.reader_model.partition(",")[0].strip()))
        return vllm_dialect(
            self.reader_model, TextTokenizer.load(self.reader_tokenizer), self.reader_context_tokens
        )

    def _tls(self) -> ssl.SSLContext | None:
        if self.reader_ca_file is None:
            return None
        try:
            return ssl.create_default_context(cafile=str(self.reader_ca_file))
        except (OSError, ssl.SSLError):
            raise StartupError("TTMARK_READER_CA_FILE: the file holds no certificates in PEM") from None


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


class DetectionSettings(
    CaseSettings,
    LabelSettings,
    ReaderSettings,
    TrustSettings,
    ServiceSettings,
):
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
    answers_per_passage: int = Field(
        default=12,
        ge=0,
        le=MOST_ANSWERS,
        description="Answers about the same evidence that a tenant's tokens without detect:evidence "
        "get in half a day; 0: any.",
    )
    chance_findings: float = Field(
        default=0.1,
        ge=0,
        le=1e6,
        description="False findings to be expected of a token without detect:evidence in half a day: 0.1 "
        "are 10 documents at 1e-2, 10,000 at 1e-5; 0: any.",
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
