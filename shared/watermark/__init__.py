"""The watermark core: pure functions of tokens, keys and probabilities."""
