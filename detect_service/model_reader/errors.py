"""What keeps a text from being read; detection goes on without."""


class ReaderError(Exception):
    """There is no reading; the message names no text and no secret."""


class ReaderDown(ReaderError):
    """The reader does not answer, or not in time, or is left alone because it did not before."""


class ReaderRefused(ReaderError):
    """The reader is there and does not read these texts."""


class ReaderElsewhere(ReaderError):
    """The reader's address is not one that texts may be sent to."""
