"""Answers in a form: tools, reasoning, JSON."""
