"""The HTTP interface of the generation service: OpenAI's routes over any `Generator`."""
