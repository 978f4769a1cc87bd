"""Web pages that are deep, wide, broken or full of blanks."""

from collections.abc import Callable


def _repeated(part: bytes, before: bytes = b"<p>a", after: bytes = b"x") -> Callable[[int], bytes]:
    return lambda size: before + part * ((size - len(before) - len(after)) // len(part)) + after


def _attributes(size: int) -> bytes:
    count = size // 10
    return b"<p " + b" ".join(b"a%07d=" % number for number in range(count)) + b">x</p>"


def _tags(size: int) -> bytes:
    return b"".join(b"<t%07d>x</t%07d>" % (number, number) for number in range(size // 21))


FILES = {
    # A run of blanks without a line end: quadratic for `[ \t]*\n[ \t]*`.
    "blanks.html": _repeated(b"<b> </b>"),
    "tabs.html": _repeated(b"\t", b"<pre>"),
    "breaks.html": _repeated(b" <br> "),
    "deep-blocks.html": _repeated(b"<div>", b""),
    "deep-inline.html": _repeated(b"<b>"),
    "deep-tables.html": _repeated(b"<table><tr><td>", b""),
    "attributes.html": _attributes,
    "long-attribute.html": _repeated(b"y", b"<p title='", b"'>x</p>"),
    "elements.html": _repeated(b"<p>a"),
    "empty-elements.html": _repeated(b"<i/>"),
    "tag-names.html": _tags,
    "entities.html": _repeated(b"&amp;"),
    "unknown-entities.html": _repeated(b"&bogus;"),
    "comments.html": _repeated(b"<!-->"),
    "unclosed-comments.html": _repeated(b"<!--"),
    "angles.html": _repeated(b"<"),
    "end-tags.html": _repeated(b"</b>"),
    "misnested.html": _repeated(b"<a><b><i></a></i></b>"),
    "forms.html": _repeated(b"</p><form><select><option>"),
}
