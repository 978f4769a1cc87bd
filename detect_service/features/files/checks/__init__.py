"""One question about a file, in the form that OpenAI's clients know."""
