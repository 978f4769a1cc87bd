"""What can be wrong with a file."""


class UnreadableFile(Exception):
    """The file gives no text; the message says why, for the person who sent it."""
