"""The results of documents that are not examined: over a limit, or failed inside."""

import traceback
from typing import TypeVar

import structlog

from ttmark.shared.detection_words import no_answer_message
from ttmark.shared.http.service_errors import InternalError, ServiceError
from ttmark.shared.languages.words import Words
from ttmark.shared.schemas.detection.detect import DetectionResult, DocumentError

Result = TypeVar("Result", bound=DetectionResult)

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
    document_id: str, why: BaseException | DocumentError, words: Words, kind: type[Result]
) -> Result:
    """The result of a document at which `why` was raised, which is logged.

    Or of one that is over a limit, beside others that are not; told in English.
    """
    if isinstance(why, DocumentError):
        message = no_answer_message("not_examined", words, why.message)
    else:
        log_fault(why)
        message, why = no_answer_message("not_examined", words), _WHY
    return kind(id=document_id, verdict="not_examined", message=message, tokens=0, hypotheses=0, error=why)


def log_fault(error: BaseException) -> None:
    """Writes the error's name and its lines of code: its message may hold what the document says."""
    structlog.get_logger("ttmark.detection").error(
        "document_failed",
        error=type(error).__name__,
        traceback="".join(traceback.format_tb(error.__traceback__)),
    )
