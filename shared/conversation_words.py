"""The result of a conversation in words, for people."""

import math

from ttmark.shared.detection_words import (
    NEITHER,
    NO_FINDING,
    PROVES_NOTHING,
    about_words,
    beyond_chance,
    key_name,
    one_in,
)
from ttmark.shared.schemas.detection import Message
from ttmark.shared.schemas.detection_combined import CombinedResult

SOME_OF_THEM = (
    "It does not show that each message carries the mark, nor that every word is the model's, or who wrote "
    "the rest. A mark stays when single words change: numbers, names and negations may have been changed "
    "since."
)


def conversation_message(result: CombinedResult, fpr: float) -> Message:
    """The words for a conversation that was examined, at this false positive rate."""
    rate, number = one_in(math.log10(fpr)), len(result.messages or [])
    these, carry = (f"these {number} messages", "carry") if number != 1 else ("this message", "carries")
    held = (
        f"A finding is held to a false alarm rate: no more than {rate} conversations without our watermark "
        "would get one, however often they are asked about as they grow."
    )
    if result.verdict == "watermarked":
        made_with = "one of our keys" if result.key is None else f"our key {key_name(result.key)}"
        parts = [f"Taken together, {these} {carry} our watermark, of {made_with}.", held]
        if result.log10_p is not None:
            parts.append(
                f"No more than {one_in(result.log10_p)} of such conversations would show as "
                f"much{beyond_chance(result.log10_p)}."
            )
        return Message(
            headline="Watermark found in the conversation", explanation=" ".join(parts), caution=SOME_OF_THEM
        )
    if result.verdict == "too_short":
        explanation = (
            f"Nothing was found, and there are only about {about_words(result.tokens)} in all: as many with "
            "our watermark often show nothing. What is repeated counts once. You may ask again with the "
            "messages that follow."
        )
        return Message(headline="Too short to tell", explanation=explanation, caution=NEITHER)
    if result.weak and result.log10_p is not None:
        explanation = (
            f"There is some evidence, and too little for a finding: of conversations without our watermark "
            f"{one_in(result.log10_p)} shows as much by chance. A finding is held to {rate}. You may ask "
            "again with the messages that follow."
        )
        return Message(headline="Weak evidence, no finding", explanation=explanation, caution=NO_FINDING)
    explanation = f"None of the keys that were tried was found in {these} together. {held}"
    return Message(headline="No watermark found", explanation=explanation, caution=PROVES_NOTHING)
