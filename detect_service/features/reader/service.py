"""Opens the feature: a language model reads texts along."""

from contextlib import aclosing

from ttmark.detect_service.api.features import Feature, Part
from ttmark.detect_service.features.reader.reads_along import ReadsAlong
from ttmark.detect_service.features.reader.settings import ReaderSettings
from ttmark.detect_service.stage import Stage
from ttmark.services.composition.opening import Opening


def opened(opening: Opening) -> Feature:
    settings = ReaderSettings()
    reader = ReadsAlong(settings.open_reader(), opening.registry, settings.reader_timeout_seconds)
    return Feature(
        lambda _: Part(background=[reader.watch]),
        None if reader.state == "none" else Stage("reader", reader=reader),
        running=[aclosing(reader)],
    )
