"""A second detector, written from `docs/spec.md` alone in plain Python: slow, and without a line of ours."""

from tests.harness.spec_detector.detector import Answer, detect
from tests.harness.spec_detector.question import Found, Reading, detect_combined, detect_conversation

__all__ = ["Answer", "Found", "Reading", "detect", "detect_combined", "detect_conversation"]
