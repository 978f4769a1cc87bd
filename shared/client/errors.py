"""What a client raises."""


class ClientError(Exception):
    """A service refused a request or could not be reached; the message is its own words.

    Attributes:
        status: HTTP status, None when no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
