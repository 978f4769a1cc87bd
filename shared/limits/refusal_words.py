"""What a caller is told whose questions about a text are refused."""

import math

from ttmark.shared.counted import counted
from ttmark.shared.limits.variants import Refusal, VariantRule


def refusal_words(refusal: Refusal, rule: VariantRule) -> str:
    """What happened, when it ends, and what to do."""
    wait = _duration(refusal.wait_seconds)
    match refusal.reason:
        case "variants":
            return (
                f"Document {refusal.index} holds a passage that this token has asked about {rule.limit} "
                "times, changed a little or with other options. Passages of the document can be asked about "
                f"again in {wait}; other texts now. Access tokens with the scope detect:evidence are exempt "
                "from this limit; they have a wider one."
            )
        case "findings":
            return (
                f"This token has asked about so many documents that {rule.findings:g} false findings are "
                f"to be expected, by the rates that it chose. It may ask again in {wait}. A smaller fpr "
                "allows more documents. Access tokens with the scope detect:evidence are exempt."
            )
        case "space":
            return (
                "The access tokens of this tenant have asked about more text than is kept count of. They may "
                f"ask about new documents in {wait}. Tokens with the scope detect:evidence count apart."
            )


def _duration(seconds: float) -> str:
    if seconds <= 120:
        return counted(math.ceil(seconds), "second")
    if seconds <= 7200:
        return f"{math.ceil(seconds / 60)} minutes"
    return f"{math.ceil(seconds / 3600)} hours"
