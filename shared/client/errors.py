"""What a client raises.

ClientError
├── ServiceRefused: the service answered with an error
├── ServiceUnreachable: no answer came
│   └── AnswerLost: and the service may have done what it was asked for
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
        retry_after: seconds after which the service may be asked again; None where it names no time.
    """

    def __init__(
        self,
        message: str,
        status: int,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status)
        self.code = code
        self.param = param
        self.retry_after = retry_after


class ServiceUnreachable(ClientError):
    """No answer came: a wrong address, a service that is away, or a connection that broke."""


class AnswerLost(ServiceUnreachable):
    """A POST may have arrived, and its answer has not: what it asks for may be done, charged, or neither.

    Attributes:
        idempotency_key: under which the same request can be sent again and is done once; None where the call
            has none.
    """

    def __init__(self, message: str, status: int | None, idempotency_key: str | None) -> None:
        super().__init__(message, status)
        self.idempotency_key = idempotency_key


class UnexpectedAnswer(ClientError):
    """The answer is not JSON or lacks a field: something else answers there, or a service of another age."""
