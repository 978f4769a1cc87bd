"""Manifests of documents: set apart from the text, verified, and said with the result."""

NEEDS = ("files",)
