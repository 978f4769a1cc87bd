"""A text as people see it: tricks with characters counted always, undone on request."""
