"""Opens the feature: a language model reads texts along."""

import ssl
from contextlib import aclosing

from ttmark.detect_service.api.features import DetectionFeature, Part
from ttmark.detect_service.features.reader.dialect import Dialect, ReaderElsewhere, ttmark_dialect
from ttmark.detect_service.features.reader.reader_client import ReaderClient
from ttmark.detect_service.features.reader.reads_along import ReaderMetrics, ReadsAlong
from ttmark.detect_service.features.reader.settings import ReaderSettings
from ttmark.detect_service.features.reader.vllm_dialect import vllm_dialect
from ttmark.detect_service.stage import VerdictStage
from ttmark.services.composition.opening import Opening
from ttmark.services.model_folder import model_id
from ttmark.services.startup import StartupError
from ttmark.shared.tokenization import TextTokenizer


def opened(opening: Opening) -> DetectionFeature | None:
    settings, metrics = ReaderSettings(), ReaderMetrics(opening.registry)
    client = open_reader(settings)
    if client is None:
        return None
    reader = ReadsAlong(client, metrics, settings.reader_timeout_seconds)
    stage = VerdictStage("reader", reader=reader)
    return DetectionFeature(lambda _: Part(background=[reader.watch]), stage, running=[aclosing(reader)])


def open_reader(settings: ReaderSettings) -> ReaderClient | None:
    """The reader's client, if there is one. Raises StartupError: settings are incomplete or wrong."""
    if settings.reader_url is None:
        return None
    token = None if settings.reader_token is None else settings.reader_token.get_secret_value()
    if token is None and settings.reader_token_file is not None:
        token = settings.text_of("reader_token_file") if settings.reader_token_file.exists() else ""
        if not token:
            return None
        if len(token.split()) > 1:
            raise StartupError("TTMARK_READER_TOKEN_FILE: the file holds more than a token")
    try:
        return ReaderClient(
            settings.reader_url,
            _dialect(settings),
            token=token,
            timeout_seconds=settings.reader_timeout_seconds,
            anywhere=settings.reader_anywhere,
            tls=_tls(settings),
        )
    except ReaderElsewhere as error:
        raise StartupError(f"TTMARK_READER_URL: {error}; TTMARK_READER_ANYWHERE=true allows it") from None


def _dialect(settings: ReaderSettings) -> Dialect:
    if not settings.reader_model:
        raise StartupError("TTMARK_READER_URL needs TTMARK_READER_MODEL: the name of the model that reads")
    if settings.reader_tokenizer is None:
        # As TTMARK_MODEL has it too, so that one value serves both.
        return ttmark_dialect(model_id(settings.reader_model.partition(",")[0].strip()))
    tokenizer = TextTokenizer.load(settings.reader_tokenizer)
    return vllm_dialect(settings.reader_model, tokenizer, settings.reader_context_tokens)


def _tls(settings: ReaderSettings) -> ssl.SSLContext | None:
    if settings.reader_ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(settings.reader_ca_file))
    except (OSError, ssl.SSLError):
        raise StartupError("TTMARK_READER_CA_FILE: the file holds no certificates in PEM") from None
