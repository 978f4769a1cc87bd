"""Opens the feature: a language model reads texts along."""

from contextlib import aclosing

from ttmark.detect_service.api.features import Feature, Part
from ttmark.detect_service.features.reader.reads_along import ReaderMetrics, ReadsAlong
from ttmark.detect_service.features.reader.settings import ReaderSettings
from ttmark.detect_service.stage import Stage
from ttmark.services.composition.opening import Opening


def opened(opening: Opening) -> Feature | None:
    settings, metrics = ReaderSettings(), ReaderMetrics(opening.registry)
    client = settings.open_reader()
    if client is None:
        return None
    reader = ReadsAlong(client, metrics, settings.reader_timeout_seconds)
    stage = Stage("reader", reader=reader)
    return Feature(lambda _: Part(background=[reader.watch]), stage, running=[aclosing(reader)])
