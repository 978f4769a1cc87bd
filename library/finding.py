"""What `ttmark.detect` answers: a verdict in a sentence, and a picture of the passages."""

from dataclasses import dataclass
from html import escape

from ttmark.shared.detection_words import is_sure, one_in
from ttmark.shared.languages.words import counted


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that carries the mark, more likely than not: half-open ranges.

    Attributes:
        start_char, end_char: of the text; None where there are token ids alone.
        log10_e: log10 of how many passages as strong as this one chance gives; None for a whole text.
    """

    start_token: int
    end_token: int
    start_char: int | None = None
    end_char: int | None = None
    log10_e: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer about one text.

    Attributes:
        verdict: watermarked, not_detected or too_short, as the detection service says it.
        log10_p: of the p-value, corrected for every key and tokenizer that was tried.
        log10_e: of the E-value; 1 / E is a p-value that anybody can check.
        fpr: the false alarm rate that the verdict is held to.
        share: of the tokens that stand in marked passages, estimated; 0 where nothing was found.
        read: whether a language model read the text, too.
        reading: the one that counts: `as_sent`, `unwrapped` or `typography`.
    """

    verdict: str
    log10_p: float
    log10_e: float
    fpr: float
    tokens: int
    passages: tuple[FoundPassage, ...] = ()
    share: float = 0.0
    read: bool = False
    text: str | None = None
    reading: str = "as_sent"

    @property
    def p(self) -> float:
        """The p-value: the chance of so much agreement with the key, or more, in text without its mark."""
        return float(10.0**self.log10_p)

    @property
    def watermarked(self) -> bool:
        return self.verdict == "watermarked"

    def __bool__(self) -> bool:
        return self.watermarked

    def __repr__(self) -> str:
        chance = one_in(self.log10_p)
        if self.watermarked:
            sure = sum(is_sure(one.log10_e, self.fpr) for one in self.passages)
            where = f", in {counted(sure, 'passage')}" if sure else ""
            return (
                f"Watermarked: about {self.share:.0%} of {self.tokens} tokens{where}. By chance, "
                f"{chance} texts without the mark shows as much."
            )
        if self.verdict == "too_short":
            return (
                f"Too short to tell: nothing was found in {self.tokens} tokens, where most marked texts "
                f"would show nothing either (false alarm rate {self.fpr:g})."
            )
        return (
            f"Not detected: no mark of this key in {self.tokens} tokens at a false alarm rate of "
            f"{self.fpr:g}; {chance} texts without the mark shows as much."
        )

    def _repr_html_(self) -> str:
        """The sentence, and below it the text with its passages shaded."""
        parts, end = [], 0
        if self.text is not None:
            for passage in self.passages:
                if passage.start_char is not None and passage.end_char is not None:
                    inside = escape(self.text[passage.start_char : passage.end_char])
                    parts += [escape(self.text[end : passage.start_char])]
                    parts += [f'<mark style="background:#ffe08a;color:#000">{inside}</mark>']
                    end = passage.end_char
            parts.append(escape(self.text[end:]))
        shown = f'<div style="white-space:pre-wrap">{"".join(parts)}</div>' if parts else ""
        return f"<p><b>{escape(repr(self))}</b></p>{shown}"
