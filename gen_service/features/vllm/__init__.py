"""Tandem decoding on vLLM behind the same protocol as the embedded engine: `VllmEngine.load(...)`."""

NEEDS = ("structured",)
