"""Several messages as one question."""

NEEDS = ("files", "spent")
