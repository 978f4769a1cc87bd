"""Readings: what the model says of texts of others."""
