"""Results in words, for people: of a text, of a conversation, of manifests; and what they do not say."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detection.detect import (
    Basis,
    CombinedResult,
    DetectedKey,
    DetectionResult,
    ForeignMarkFound,
    MarkedShare,
    Message,
    Verdict,
)
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

_NEARLY_ALL = 0.95
# Rarer than one in a million million, which no archive of texts comes near.
_PRACTICALLY_IMPOSSIBLE = -12.0
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def message(result: DetectionResult, fpr: float, words: Words = ENGLISH) -> Message:
    """The words for a result at this false positive rate; they hold nothing that the result does not."""
    if result.verdict in ("not_examined", "no_verdict"):
        return no_answer_message(result.verdict, words)
    if result.asked_before is not None:
        before = result.asked_before
        said = message(result.model_copy(update={"asked_before": None}), fpr, words)
        name = "before.found" if before.verdict == "watermarked" else "before.nothing"
        at = datetime.fromtimestamp(before.at, UTC)
        sentence = words.say(name, length=about_words(before.tokens, words), at=at)
        return said.model_copy(update={"explanation": f"{said.explanation} {sentence}"})
    if result.verdict == "watermarked":
        return _found(result, fpr, words)
    if result.verdict == "too_short":
        return spoken(words, "short", explanation=_too_short(result, fpr, words))
    rate = one_in(math.log10(fpr), words)
    if isinstance(result, CombinedResult) and result.weak and result.log10_p is not None:
        chance = one_in(result.log10_p, words)
        return spoken(words, "weak", explanation=words.say("weak.explanation", chance=chance, rate=rate))
    return spoken(words, "none", explanation=words.say("none.explanation", rate=rate))


def public_message(result: DetectionResult, fpr: float, words: Words = ENGLISH) -> Message:
    """The words for somebody who is told the verdict and its basis alone: no number but the rate."""
    if result.verdict != "too_short" or not result.tokens:
        return message(result, fpr, words)
    return spoken(words, "short", explanation=words.say("short.public"))


def no_answer_message(verdict: Verdict, words: Words, explanation: str | None = None) -> Message:
    """The words for a document that was `not_examined`, or that a limit leaves with `no_verdict`.

    `explanation` stands in place of the usual one.
    """
    return Message(
        headline=words.say(f"{verdict}.headline"),
        explanation=explanation or words.say(f"{verdict}.explanation"),
        caution=words.say("no_answer.caution"),
        language=words.named,
    )


def spoken(words: Words, about: str, *, explanation: str, headline: str | None = None) -> Message:
    """An explanation with the headline and the caution that the catalogue has for it."""
    return Message(
        headline=headline or words.say(f"{about}.headline"),
        explanation=explanation,
        caution=words.say(f"{about}.caution"),
        language=words.named,
    )


def one_in(log10_p: float, words: Words = ENGLISH) -> str:
    """A probability as "1 in 100,000", given its decimal logarithm."""
    if log10_p > -0.3:
        return words.say("chance.half")
    if log10_p > -7.0:
        return words.say("chance.one_in", number=round(float(f"{10.0**-log10_p:.2g}")))
    return words.say("chance.power", power=str(math.floor(-log10_p + 1e-9)).translate(_RAISED))


def chance_sentence(log10_p: float, name: str, words: Words) -> str:
    """The sentence of that name, or the one of a probability that is too small to picture."""
    impossible = "_impossible" if log10_p <= _PRACTICALLY_IMPOSSIBLE else ""
    return words.say(f"{name}{impossible}", chance=one_in(log10_p, words))


def about_words(tokens: int, words: Words = ENGLISH) -> str:
    """A length as people count: an English word is some 1.3 tokens. One digit, or two."""
    length = max(1, tokens * 3 // 4)
    return words.say("length", count=int(float(f"{length:.2g}")) if length > 20 else length)


def key_name(key: DetectedKey, words: Words = ENGLISH) -> str:
    """A key version, with the payload or the number in its pool."""
    name = words.say("key.name", key=key.key_id, version=str(key.version))
    if key.payload is not None:
        return words.say("key.payload", name=name, number=str(key.payload))
    return name if key.pool_key is None else words.say("key.pool_key", name=name, number=str(key.pool_key))


def is_sure(log10_e: float | None, fpr: float) -> bool:
    """Whether a passage with this E-value is by itself as sure as the rate, so that a headline counts it."""
    return log10_e is None or log10_e <= math.log10(fpr)


def _found(result: DetectionResult, fpr: float, words: Words) -> Message:
    passages = result.segments or []
    single = len(passages) == 1
    what = "passage" if single else "passages"
    shown = [segment.key for segment in passages] or [key for key in (result.key,) if key is not None]
    keys = list(dict.fromkeys(key_name(key, words) for key in shown))
    parts = []
    if result.basis == Basis.WATERMARK:
        carrier = what if passages else "text" if result.voice in (None, "attachment") else "quoting"
        parts.append(words.say(f"found.{carrier}", keys=_keys(keys, words)))
        if isinstance(result, CombinedResult) and result.marked_share is not None:
            if not passages and result.marked_share.low >= _NEARLY_ALL:
                parts.append(words.say("found.all"))
            else:
                parts.append(_share(result.marked_share, what if passages else "text", words))
                parts.append(words.say(f"found.edges_{what}" if passages else "found.whole"))
    if result.basis != Basis.WATERMARK or result.foreign_marks:
        carrier = "also" if result.basis == Basis.WATERMARK else what
        systems = _systems(result.foreign_marks or [], words)
        parts.append(words.say(f"foreign.{carrier}", systems=systems))
    if result.voice is not None:
        parts.append(words.say(f"voice.{result.voice}"))
    if len(keys) > 1:
        parts.append(words.say("found.several_keys"))
    ours = result.basis == Basis.WATERMARK and not result.foreign_marks
    rate, sure = one_in(math.log10(fpr), words), sum(is_sure(one.log10_e_value, fpr) for one in passages)
    parts.append(words.say("found.held" if ours else "found.held_such", rate=rate))
    if sure < len(passages):
        parts.append(words.say("found.unsure", count=len(passages) - sure))
    if result.log10_p is not None and result.log10_p <= math.log10(fpr):
        parts.append(chance_sentence(result.log10_p, "found.chance", words))
    if (result.pool_keys_found or 0) > 1:
        parts.append(words.say("found.several_pool_keys"))
    headline = words.say("found.headline_passages", count=sure) if sure else None
    if result.voice is not None:
        headline = words.say(f"voice.{result.voice}_headline")
    return spoken(words, "found", explanation=" ".join(parts), headline=headline)


def _keys(names: list[str], words: Words) -> str:
    if not names:
        return words.say("found.by_some_key")
    if len(names) == 1:
        return words.say("found.by_one_key", key=names[0])
    return words.say("found.by_keys", keys=words.listed(names))


def _share(share: MarkedShare, of: str, words: Words) -> str:
    """How much of the text the passages hold. An interval says nothing where it ends at 0 or at the whole."""
    low, high = share.low >= 0.05, share.high <= 0.95
    if not low and not high:
        return words.say("share.unknown")
    ends = "between" if low and high else "least" if low else "most"
    return words.say(f"share.{of}_{ends}", low=f"{100 * share.low:.0f}", high=f"{100 * share.high:.0f}")


def _systems(marks: Sequence[ForeignMarkFound], words: Words) -> str:
    """The systems whose marks were found, with the keys; without evidence neither is known."""
    systems = []
    for mark in marks:
        scheme, name = FOREIGN_SCHEMES.get(mark.key.scheme or ""), key_name(mark.key, words)
        if scheme is None:
            systems.append(words.say("foreign.unnamed_scheme", scheme=str(mark.key.scheme), key=name))
        else:
            systems.append(words.say("foreign.system", system=scheme.title, key=name))
    return words.listed(systems) or words.say("foreign.some_system")


def _too_short(result: DetectionResult, fpr: float, words: Words) -> str:
    if not result.tokens:
        return words.say("short.empty")
    rate = one_in(math.log10(fpr), words)
    parts = [words.say("short.explanation", length=about_words(result.tokens, words), rate=rate)]
    if result.tokens_typical is not None:
        parts.append(words.say("short.usual", length=about_words(result.tokens_typical, words)))
        if result.tokens_typical <= result.tokens:
            parts[0] = words.say("short.repeats", rate=rate)
            parts.append(words.say("short.counts_once"))
    return " ".join(parts)
