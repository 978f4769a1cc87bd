"""Settings of the language model that reads texts along."""

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, SecretStr

from ttmark.services.model_folder import model_id
from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import ReadableFile, Seconds, TokenizerFolder, WebAddress
from ttmark.services.startup import StartupError

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
        """The reader's client, if there is one. Raises StartupError: settings are incomplete or wrong."""
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
