"""A detection result in words, for people: what was found, how sure that is, and what it does not say."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from ttmark.shared.counted import counted
from ttmark.shared.schemas.detected import Basis, DetectedKey, ForeignMarkFound
from ttmark.shared.schemas.detection import AskedBefore, DetectionResult, Message
from ttmark.shared.schemas.detection_combined import CombinedResult, MarkedShare
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

CHANGED_SINCE = (
    "It does not show that every word is the model's, or who wrote the rest. A mark stays when single words "
    "change: numbers, names and negations may have been changed since."
)
PROVES_NOTHING = (
    "This proves nothing. It does not show that a person wrote the text, nor that no model did: other "
    "systems leave no mark of ours, and heavy editing wears a mark off."
)
WHOLE = "We cannot say which parts carry it: the evidence is of the text as a whole."
ALL, _NEARLY_ALL = "All of the text carries it, or nearly all.", 0.95
PASSAGE = "Where it begins and ends is an estimate."
PASSAGES = "Where they begin and end is an estimate."
NO_FINDING = (
    "This is no finding: it shows neither that a model of ours wrote the text nor that a person did. Of many "
    "texts that are checked some show as much by chance."
)
NEITHER = "This proves nothing either way. Add the rest of the text if there is more of it."
PUBLIC_TOO_SHORT = (
    "Nothing was found, and the text is so short that a text with our watermark often shows nothing. What is "
    "repeated counts once."
)
SEVERAL_KEYS = (
    "Several keys of a pool were found: passages of several completions, as in a collection of answers, or "
    "in a forgery stitched from stolen pieces."
)

NOT_EXAMINED = Message(
    headline="Not examined",
    explanation="An error on our side ended the examination of this text. Send it again later; if that does "
    "not help, tell the operator.",
    caution="This is no answer: it says nothing about the text.",
)

NO_VERDICT = Message(
    headline="No verdict",
    explanation="A limit on questions is reached, and the error says which and when it ends. Ask again then, "
    "or with an access token that may see evidence.",
    caution="This is no answer: it says nothing about the text.",
)

# Rarer than one in a million million, which no archive of texts comes near.
_PRACTICALLY_IMPOSSIBLE = -12.0
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def message(result: DetectionResult, fpr: float) -> Message:
    """The words for a result at this false positive rate; they hold nothing that the result does not."""
    if result.verdict == "not_examined":
        return NOT_EXAMINED
    if result.verdict == "no_verdict":
        return NO_VERDICT
    if result.asked_before is not None:
        return _with_what_was_said(
            message(result.model_copy(update={"asked_before": None}), fpr), result.asked_before
        )
    if result.verdict == "watermarked":
        return _found(result, fpr)
    if result.verdict == "too_short":
        return _too_short(result, fpr)
    if isinstance(result, CombinedResult) and result.weak and result.log10_p is not None:
        explanation = (
            f"There is some evidence, and too little for a finding: of texts without our watermark "
            f"{one_in(result.log10_p)} shows as much by chance. A finding is held to {_rate(fpr)}."
        )
        return Message(headline="Weak evidence, no finding", explanation=explanation, caution=NO_FINDING)
    explanation = (
        "None of the keys that were tried was found. A finding is held to a false alarm rate: no more than "
        f"{_rate(fpr)} texts without our watermark would get one."
    )
    return Message(headline="No watermark found", explanation=explanation, caution=PROVES_NOTHING)


def _with_what_was_said(words: Message, before: AskedBefore) -> Message:
    found = "our watermark was found in it" if before.verdict == "watermarked" else "nothing was found in it"
    said = (
        f" A passage of about {about_words(before.tokens)} was asked about too often to count again; on "
        f"{datetime.fromtimestamp(before.at, UTC):%Y-%m-%d at %H:%M} UTC {found}."
    )
    return words.model_copy(update={"explanation": words.explanation + said})


def public_message(result: DetectionResult, fpr: float) -> Message:
    """The words for somebody who is told the verdict and its basis alone: no number but the rate."""
    if result.verdict != "too_short":
        return message(result, fpr)
    return Message(headline="Too short to tell", explanation=PUBLIC_TOO_SHORT, caution=NEITHER)


def one_in(log10_p: float) -> str:
    """A probability as "1 in 100,000", given its decimal logarithm."""
    if log10_p > -0.3:
        return "at least 1 in 2"
    if log10_p > -7.0:
        return f"1 in {float(f'{10.0**-log10_p:.2g}'):,.0f}"
    return "1 in 10" + str(math.floor(-log10_p + 1e-9)).translate(_RAISED)


def beyond_chance(log10_p: float) -> str:
    """What follows a probability that is too small to picture."""
    return ": practically impossible by chance" if log10_p <= _PRACTICALLY_IMPOSSIBLE else ""


def about_words(tokens: int) -> str:
    """A length as people count: an English word is some 1.3 tokens. One digit, or two."""
    words = max(1, tokens * 3 // 4)
    return counted(int(float(f"{words:.2g}")) if words > 20 else words, "English word")


def key_name(key: DetectedKey) -> str:
    """A key version, with the payload or the number in its pool."""
    name = f"{key.key_id}, version {key.version}"
    if key.payload is not None:
        return f"{name}, payload {key.payload}"
    return name if key.pool_key is None else f"{name}, pool key {key.pool_key}"


def _found(result: DetectionResult, fpr: float) -> Message:
    mark = "such a mark" if result.foreign_marks or result.basis != Basis.WATERMARK else "our watermark"
    passages = result.segments or []
    where = " in one passage" if len(passages) == 1 else f" in {len(passages)} passages" if passages else ""
    shown = [segment.key for segment in passages] or [key for key in (result.key,) if key is not None]
    keys = list(dict.fromkeys(map(key_name, shown)))
    made_with = (
        f"{'our keys' if len(keys) > 1 else 'our key'} {' and '.join(keys)}" if keys else "one of our keys"
    )
    single = len(passages) == 1
    parts, start = [], f"This text contains {'a passage' if single else 'passages'}"
    if result.basis == Basis.WATERMARK:
        carries = f"{start} made with" if passages else "This text carries our watermark, of"
        parts.append(f"{carries} {made_with}.")
        if isinstance(result, CombinedResult) and result.marked_share is not None:
            it_holds = "It holds" if single else "They hold" if passages else "Passages that carry it hold"
            if not passages and result.marked_share.low >= _NEARLY_ALL:
                parts.append(ALL)
            else:
                parts.append(_share(result.marked_share, it_holds))
                parts.append(WHOLE if not passages else PASSAGE if single else PASSAGES)
        start = "The text also contains passages"
    if result.basis != Basis.WATERMARK or result.foreign_marks:
        carry = "carries" if start.endswith("a passage") else "carry"
        parts.append(f"{start} that {carry} the mark of {_systems(result.foreign_marks or [])}.")
    if len(keys) > 1:
        parts.append("Several keys do not mean several authors.")
    parts.append(
        f"The answer is held to a false alarm rate: no more than {_rate(fpr)} texts without {mark} "
        "would get it."
    )
    if result.log10_p is not None and result.log10_p <= math.log10(fpr):
        parts.append(
            f"No more than {one_in(result.log10_p)} of such texts would show evidence as "
            f"strong{beyond_chance(result.log10_p)}."
        )
    if (result.pool_keys_found or 0) > 1:
        parts.append(SEVERAL_KEYS)
    return Message(headline=f"Watermark found{where}", explanation=" ".join(parts), caution=CHANGED_SINCE)


def _share(share: MarkedShare, it_holds: str) -> str:
    """How much of the text the passages hold. An interval says nothing where it ends at 0 or at the whole."""
    low, high = share.low >= 0.05, share.high <= 0.95
    if low and high:
        return f"{it_holds} {_percent(share.low)} to {_percent(share.high)} of the text."
    if low:
        return f"{it_holds} at least {_percent(share.low)} of the text."
    if high:
        return f"{it_holds} at most {_percent(share.high)} of the text."
    return "How much of the text carries the mark cannot be told."


def _systems(marks: Sequence[ForeignMarkFound]) -> str:
    """The systems whose marks were found, with the keys; without evidence neither is known."""
    named = [f"{_system(mark.key)}, key {key_name(mark.key)}" for mark in marks]
    return " and of ".join(named) or "another system"


def _system(key: DetectedKey) -> str:
    scheme = FOREIGN_SCHEMES.get(key.scheme or "")
    return scheme.title if scheme else f"another system ({key.scheme})"


def _too_short(result: DetectionResult, fpr: float) -> Message:
    parts = [
        f"Nothing was found, and the text has only about {about_words(result.tokens)}: a text with our "
        f"watermark often shows nothing at that length, at a rate of {_rate(fpr)}."
    ]
    if result.tokens_typical is not None:
        usual = about_words(result.tokens_typical)
        parts.append(f"Half of the texts that were measured needed about {usual} or more, unedited.")
        if result.tokens_typical <= result.tokens:
            parts[0] = f"Nothing was found, and too little of the text counts at a rate of {_rate(fpr)}."
            parts.append("What is repeated counts once.")
    return Message(headline="Too short to tell", explanation=" ".join(parts), caution=NEITHER)


def _rate(fpr: float) -> str:
    return one_in(math.log10(fpr))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
