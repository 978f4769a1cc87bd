"""Commands and options that are gone, and what is said to who types them."""

from collections.abc import Sequence

_PORTABLE = "portable marks are gone: hand on the key that you imported, and `ttmark keys import` takes it"
_MARK = "portable marks are gone: `ttmark keys import` the key, then ask the service"
_REVEAL = "no version is made public any more: `ttmark keys export` writes its PRF keys while it is detected"
_KEPT = "no cases are kept: keep the file"
_VERIFY = "verify is an option of detect: `ttmark detect FILE --prompt TEXT`, with --chat and the sampling"

DROPPED = {
    "ttmark case store": _KEPT,
    "ttmark case show": _KEPT,
    "ttmark case delete": _KEPT,
    "ttmark case export-kept": "commit 510b5342 is the last that exports kept cases",
    "ttmark keys describe": _PORTABLE,
    "ttmark keys reveal": _REVEAL,
    "ttmark detect --mark": _MARK,
    "ttmark detect --secret-file": _MARK,
    "ttmark verify": _VERIFY,
}
"""By what was typed, without its values."""


def dropped(command: str, typed: Sequence[str]) -> str | None:
    """What took the place of a word that the command, such as `ttmark keys`, does not know; None: nothing."""
    names = (f"{command} {word.partition('=')[0]}" for word in typed)
    return next((DROPPED[name] for name in names if name in DROPPED), None)
