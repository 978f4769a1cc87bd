"""Marks of other systems."""
