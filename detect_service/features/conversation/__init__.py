"""Several messages as one question."""
