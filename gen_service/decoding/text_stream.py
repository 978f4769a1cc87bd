"""From tokens to text piece by piece: multi-byte characters stay whole and stop strings cut."""

from collections.abc import Sequence

from ttmark.shared.tokenization import TextTokenizer

_REPLACEMENT = "\ufffd"
_IN_THE_MAKING = 4  # replacements, and tokens, that a character can show as until it is whole
_MOST_TOKENS = 32


class TextStream:
    """Incremental detokenisation of one completion, in time that is linear in its tokens.

    The pieces add up to `tokenizer.decode` of all tokens, cut before the first stop string that a token
    completes; where that has no `stops` it counts for nothing. Text is held back while it ends inside a
    character, or in what may become a stop string.
    """

    def __init__(self, tokenizer: TextTokenizer, stop: Sequence[str]) -> None:
        self.stopped = False
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._ids: list[int] = []  # the tokens that still influence the text
        self._read = 0  # of them, those whose text was whole when it was last looked at
        self._sent = 0  # characters of their text that have been released
        self._held = ""

    def push(self, token: int, *, stops: bool = True) -> str:
        """Text that the token makes certain; sets `stopped` if a stop string is complete."""
        self._ids.append(token)
        return self._release(self._decode_new(final=False), final=False, stops=stops)

    def finish(self, *, stops: bool = True) -> str:
        """What was held back, at the end of the completion."""
        return self._release(self._decode_new(final=True), final=True, stops=stops)

    def _decode_new(self, *, final: bool) -> str:
        text = self._tokenizer.decode(self._ids)
        broken = len(text) - len(text.rstrip(_REPLACEMENT))
        # A character in the making shows as replacements at the very end; those before them will stay.
        certain = len(text) if final else len(text) - min(broken, _IN_THE_MAKING)
        new, self._sent = text[self._sent : certain], max(self._sent, certain)
        if not broken:
            self._ids = self._ids[self._read :]
            self._read, self._sent = len(self._ids), len(self._tokenizer.decode(self._ids))
        elif len(self._ids) > _MOST_TOKENS:
            self._forget_between_characters(text)
        return new

    def _forget_between_characters(self, text: str) -> None:
        """Drops tokens of a `text` that goes on and on without a whole character."""
        for start in range(len(self._ids) - _IN_THE_MAKING, len(self._ids) - 2 * _IN_THE_MAKING, -1):
            before = self._tokenizer.decode(self._ids[:start])
            if len(before) <= self._sent and before + self._tokenizer.decode(self._ids[start:]) == text:
                self._ids, self._read = self._ids[start:], 0
                self._sent -= len(before)
                return

    def _release(self, new: str, *, final: bool, stops: bool) -> str:
        text = self._held + new
        cuts = [at for at in (text.find(stop) for stop in self._stop) if at >= 0] if stops else []
        if self.stopped or cuts:
            self.stopped, self._held = True, ""
            return text[: min(cuts)] if cuts else ""
        keep = 0 if final else max((overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    return next(
        (size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0
    )
