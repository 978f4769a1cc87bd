"""A second detector, written from `docs/spec.md` alone in plain Python: slow, and without a line of ours."""

from tests.harness.spec_detector.detector import Answer, detect

__all__ = ["Answer", "detect"]
