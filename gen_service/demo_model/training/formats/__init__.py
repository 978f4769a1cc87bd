"""One converter per documentation format, each from a file's text to its raw paragraphs."""
