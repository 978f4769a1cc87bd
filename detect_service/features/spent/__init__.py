"""Evidence that callers who see verdicts alone have asked about, and that counts no more."""
