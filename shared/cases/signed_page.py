"""What signed pages share: they load nothing, are read by day and by night, and can be printed."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def whole_page(title: str, parts: Sequence[str]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it; `parts` are html."""
    style = Path(__file__).with_suffix(".css").read_text()
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
    )
    return head + "\n".join(parts) + "\n</main>\n", "\n</body>\n</html>\n"


def definitions(entries: Mapping[str, str]) -> str:
    """Terms, and what they are."""
    return "<dl>" + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in entries.items()) + "</dl>"
