"""The results of documents that a limit on answers leaves without a verdict."""

from typing import TypeVar

from ttmark.shared.detection_words import no_answer_message
from ttmark.shared.languages.words import Words, duration
from ttmark.shared.limits.counting_filter import AnswerRule, Reason, Refusal
from ttmark.shared.schemas.detection.detect import DetectionResult, DocumentError

Result = TypeVar("Result", bound=DetectionResult)
_EXEMPT = "Access tokens with the scope detect:evidence are exempt."
_CODES: dict[Reason, str] = {
    "spent": "evidence_spent",
    "findings": "chance_findings_spent",
    "space": "space_full",
    "carrier": "ids_spell_nothing",
}


def no_verdict(
    document_id: str, refusal: Refusal, rule: AnswerRule, words: Words, kind: type[Result]
) -> Result:
    """The result of a document that a limit leaves without a verdict; the limit is told in English."""
    error = DocumentError(
        code=_CODES[refusal.reason], message=refusal_words(refusal, rule), retry_after=refusal.wait_seconds
    )
    message = no_answer_message("no_verdict", words, error.message)
    return kind(id=document_id, verdict="no_verdict", message=message, tokens=0, hypotheses=0, error=error)


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
