"""Whose turn it is: work that does not fit on the event loop."""
