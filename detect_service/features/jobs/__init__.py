"""Detection jobs: thousands of documents that are answered in the background, each exactly once."""

NEEDS = ("bulk", "files")
