"""A document that fails inside, or is over a limit, is answered with an error of its own."""

import traceback

import structlog

from ttmark.shared.detection_words import NOT_EXAMINED
from ttmark.shared.http.service_errors import InternalError, ServiceError
from ttmark.shared.schemas.detection import DetectionResult, DocumentError

_WHY = DocumentError(
    code=InternalError.code,
    message="An error on our side ended the examination of this document; the log says where.",
)
# What a library in Rust raises for a bug of its own. Each library has its class, and none is an Exception.
_PANIC = "PanicException"


def is_fault(error: BaseException) -> bool:
    """Whether one document may have led to an error of ours: it is no refusal, and no order to end."""
    if isinstance(error, ServiceError):
        return False
    return isinstance(error, Exception) or type(error).__name__ == _PANIC


def not_examined(
    document_id: str, error: BaseException, kind: type[DetectionResult] = DetectionResult
) -> DetectionResult:
    """The result of a document at which `error` was raised, which is logged."""
    log_fault(error)
    return kind(
        id=document_id, verdict="not_examined", message=NOT_EXAMINED, tokens=0, hypotheses=0, error=_WHY
    )


def refused(
    document_id: str, why: DocumentError, kind: type[DetectionResult] = DetectionResult
) -> DetectionResult:
    """The result of a document that is over a limit, beside others that are not."""
    message = NOT_EXAMINED.model_copy(update={"explanation": why.message})
    return kind(id=document_id, verdict="not_examined", message=message, tokens=0, hypotheses=0, error=why)


def log_fault(error: BaseException) -> None:
    """Writes the error's name and its lines of code: its message may hold what the document says."""
    structlog.get_logger("ttmark.detection").error(
        "document_failed",
        error=type(error).__name__,
        traceback="".join(traceback.format_tb(error.__traceback__)),
    )
