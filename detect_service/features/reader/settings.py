"""Settings of the language model that reads texts along."""

from pathlib import Path

from pydantic import Field, SecretStr

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import ReadableFile, Seconds, TokenizerFolder, WebAddress


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
