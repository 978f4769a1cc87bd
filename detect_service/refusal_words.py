"""What a caller is told about whose document there is no verdict."""

import math

from ttmark.shared.languages.words import counted
from ttmark.shared.limits.row_space import AnswerRule, Refusal

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
    """In seconds, minutes or hours, rounded up."""
    if seconds <= 120:
        return counted(math.ceil(seconds), "second")
    if seconds <= 7200:
        return f"{math.ceil(seconds / 60)} minutes"
    return f"{math.ceil(seconds / 3600)} hours"
