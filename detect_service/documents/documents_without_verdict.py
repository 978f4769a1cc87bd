"""The results of documents without a verdict: over a limit, failed inside, or evidence that is spent."""

import math
import traceback
from typing import TypeVar

import structlog

from ttmark.shared.detection_words import no_answer_message
from ttmark.shared.http.service_errors import InternalError, ServiceError
from ttmark.shared.languages.words import Words, counted
from ttmark.shared.limits.counting_filter import AnswerRule, Reason, Refusal
from ttmark.shared.schemas.detection import DetectionResult, DocumentError

Result = TypeVar("Result", bound=DetectionResult)
_EXEMPT = "Access tokens with the scope detect:evidence are exempt."


def refusal_words(refusal: Refusal, rule: AnswerRule) -> str:
    """What happened, when it ends, and what to do."""
    wait = duration(refusal.wait_seconds or 0.0)
    match refusal.reason:
        case "spent":
            return (
                f"Passages of this document were in {rule.limit} answers already, so they count no more, and "
                "without them nothing was found: there is no verdict. They count again in "
                f"{wait}. Other documents can be asked about now. {_EXEMPT}"
            )
        case "findings":
            return (
                f"This token has asked about so many documents that {rule.findings:g} false findings are "
                f"to be expected, by the rates that it chose. It may ask again in {wait}. A smaller fpr "
                f"allows more documents. {_EXEMPT}"
            )
        case "space":
            return (
                "The access tokens of this tenant have asked about more text than is kept count of. They may "
                f"ask about new documents in {wait}. {_EXEMPT}"
            )
        case "carrier":
            return (
                "Most of these token ids spell nothing: special tokens, parts of characters, or one token "
                f"again and again. Send the text, or the ids of a text. {_EXEMPT}"
            )


def duration(seconds: float) -> str:
    if seconds <= 120:
        return counted(math.ceil(seconds), "second")
    if seconds <= 7200:
        return f"{math.ceil(seconds / 60)} minutes"
    return f"{math.ceil(seconds / 3600)} hours"


_WHY = DocumentError(
    code=InternalError.code,
    message="An error on our side ended the examination of this document; the log says where.",
)
_CODES: dict[Reason, str] = {
    "spent": "evidence_spent",
    "findings": "chance_findings_spent",
    "space": "space_full",
    "carrier": "ids_spell_nothing",
}
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


def no_verdict(
    document_id: str, refusal: Refusal, rule: AnswerRule, words: Words, kind: type[Result]
) -> Result:
    """The result of a document that a limit leaves without a verdict; the limit is told in English."""
    error = DocumentError(
        code=_CODES[refusal.reason], message=refusal_words(refusal, rule), retry_after=refusal.wait_seconds
    )
    message = no_answer_message("no_verdict", words, error.message)
    return kind(id=document_id, verdict="no_verdict", message=message, tokens=0, hypotheses=0, error=error)


def log_fault(error: BaseException) -> None:
    """Writes the error's name and its lines of code: its message may hold what the document says."""
    structlog.get_logger("ttmark.detection").error(
        "document_failed",
        error=type(error).__name__,
        traceback="".join(traceback.format_tb(error.__traceback__)),
    )
