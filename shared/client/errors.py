"""What a client raises.

ClientError
├── ServiceRefused: the service answered with an error
├── ServiceUnreachable: no answer came
└── UnexpectedAnswer: an answer came that is not what the service's description says
"""


class ClientError(Exception):
    """A call of a service failed; the message is one line for a person to read.

    Attributes:
        status: HTTP status, None when no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServiceRefused(ClientError):
    """The service answered with an error; the message is its own words.

    Attributes:
        code: the service's name for the error, such as `key_not_found`; None where the answer has none.
        param: the field of the request at fault, such as `inputs[3].text`; None where the answer names none.
    """

    def __init__(self, message: str, status: int, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message, status)
        self.code = code
        self.param = param


class ServiceUnreachable(ClientError):
    """No answer came: a wrong address, a service that is away, or a connection that broke."""


class UnexpectedAnswer(ClientError):
    """The answer is not JSON or lacks a field: something else answers there, or a service of another age."""
