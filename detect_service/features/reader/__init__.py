"""Has texts read by a language model that another service runs."""
