"""From tokens to text piece by piece: multi-byte characters stay whole and stop strings cut."""

from collections.abc import Sequence

from shared.tokenization import TextTokenizer

_REPLACEMENT = "\ufffd"


class TextStream:
    """Incremental detokenisation of one completion.

    The pieces add up to `tokenizer.decode` of all tokens, cut before the first stop string. Text is held back
    while it ends inside a character, or in what may become a stop string.
    """

    def __init__(self, tokenizer: TextTokenizer, stop: Sequence[str]) -> None:
        self.stopped = False
        self._tokenizer = tokenizer
        self._stop = tuple(stop)
        self._ids: list[int] = []
        self._context = 0  # tokens before this one no longer influence the text
        self._read = 0  # tokens before this one have been turned into text
        self._held = ""

    def push(self, token: int) -> str:
        """Text that the token makes certain; sets `stopped` if a stop string is complete."""
        self._ids.append(token)
        return self._release(self._decode_new(final=False), final=False)

    def finish(self) -> str:
        """What was held back, at the end of the completion."""
        return self._release(self._decode_new(final=True), final=True)

    def _decode_new(self, *, final: bool) -> str:
        before = self._tokenizer.decode(self._ids[self._context : self._read])
        text = self._tokenizer.decode(self._ids[self._context :])
        if len(text) <= len(before) or (text.endswith(_REPLACEMENT) and not final):
            return ""
        self._context, self._read = self._read, len(self._ids)
        return text[len(before) :]

    def _release(self, new: str, *, final: bool) -> str:
        text = self._held + new
        cuts = [at for at in (text.find(stop) for stop in self._stop) if at >= 0]
        if self.stopped or cuts:
            self.stopped, self._held = True, ""
            return text[: min(cuts)] if cuts else ""
        keep = 0 if final else max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    return next(
        (size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0
    )
