"""Which sequences are computed next, and which rows of the cache they hold."""
