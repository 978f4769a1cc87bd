"""Grammars over the tokens of a model."""
