"""Processes that read files, and may die."""
