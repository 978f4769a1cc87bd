"""In which ways the detection service reads a text, for code that must not import the service."""

from collections.abc import Callable, Sequence

from ttmark.detect_service.normalization import TextNormalizer


def text_readings() -> Callable[[str], Sequence[str]]:
    """The text as it was sent, and without tricks where that is another text (docs/adr/0057)."""
    normalizer = TextNormalizer()

    def readings(text: str) -> Sequence[str]:
        without_tricks = normalizer.normalize(text).text
        return (text,) if without_tricks == text else (text, without_tricks)

    return readings
