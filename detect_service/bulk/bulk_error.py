"""What stops a bulk run."""


class BulkError(Exception):
    """The run cannot start or go on; the message is one line that says why."""
