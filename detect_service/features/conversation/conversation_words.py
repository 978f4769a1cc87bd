"""What is said of a conversation, in words."""

import math

from ttmark.shared.detection_words import about_words, chance_sentence, key_name, one_in, spoken
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detection.detect import CombinedResult, Message


def conversation_message(result: CombinedResult, fpr: float, words: Words = ENGLISH) -> Message:
    """The words for a conversation that was examined, at this false positive rate."""
    rate, number = one_in(math.log10(fpr), words), len(result.messages or [])
    held = words.say("conversation.held", rate=rate)
    if result.verdict == "watermarked":
        keys = (
            words.say("found.by_some_key")
            if result.key is None
            else words.say("found.by_one_key", key=key_name(result.key, words))
        )
        parts = [words.say("conversation.found", count=number, keys=keys), held]
        if result.log10_p is not None:
            parts.append(chance_sentence(result.log10_p, "conversation.chance", words))
        return spoken(words, "conversation", explanation=" ".join(parts))
    if result.verdict == "too_short":
        length, name = (
            about_words(result.tokens, words),
            "conversation.short" if result.tokens else "short.empty",
        )
        return spoken(words, "short", explanation=words.say(name, length=length))
    if result.weak and result.log10_p is not None:
        chance = one_in(result.log10_p, words)
        explanation = words.say("conversation.weak", chance=chance, rate=rate)
        return spoken(words, "weak", explanation=explanation)
    none = words.say("conversation.none", count=number)
    return spoken(words, "none", explanation=f"{none} {held}")
