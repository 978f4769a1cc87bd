"""Characters that hide a watermark: counted always, undone on request."""

from ttmark.detect_service.normalization.normalizer import NormalizedText, TextNormalizer

__all__ = ["NormalizedText", "TextNormalizer"]
