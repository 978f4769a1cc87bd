"""The text of a completion, a piece at a time, as far as it is certain: stop strings end it."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from ttmark.shared.tokenization import Detokenizer, TextTokenizer


class TextStream:
    """The text of one completion, token by token.

    The pieces add up to `tokenizer.decode` of all tokens, cut before the first stop string that a token
    completes; where that has no `stops` it counts for nothing. Text is held back while it ends inside a
    character, or in what may become a stop string. Of special tokens those with `marks` show, as these.
    """

    def __init__(
        self, tokenizer: TextTokenizer, stop: Collection[str], marks: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        self.stopped = False
        self._marks = marks
        self._text = Detokenizer(tokenizer)
        self._stop = tuple(stop)
        self._held = ""

    def push(self, token: int, *, stops: bool = True) -> str:
        """Text that the token makes certain; sets `stopped` if a stop string is complete."""
        mark = self._marks.get(token)
        new = self._text.push(token) if mark is None else self._text.finish() + mark
        return self._release(new, final=False, stops=stops)

    def finish(self, *, stops: bool = True) -> str:
        return self._release(self._text.finish(), final=True, stops=stops)

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
