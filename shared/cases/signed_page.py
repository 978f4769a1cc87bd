"""What signed pages share: they load nothing, are read by day and by night, and can be printed."""

from collections.abc import Mapping, Sequence
from html import escape

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d232b; --soft: #5b6673; --line: #d5dbe1; --paper: #fff;
  --axis: #eef1f4; --interval: #7aa2cf; --estimate: #173f6b; --promise: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #a3adb8; --line: #3a434d;
  --paper: #14181d; --axis: #232a32; --interval: #4f7fb5; --estimate: #cfe2f7; --promise: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .3rem 0 .8rem; max-width: 48rem; } li { margin: .25rem 0; max-width: 48rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0;
  border-bottom: 1px solid var(--line); font-weight: normal; }
thead th { color: var(--soft); } code { font-size: .8rem; overflow-wrap: anywhere; }
.figures th[scope="row"] { width: 24%; } ul { padding-left: 1.3rem; }
.figures .n { text-align: right; padding-right: 1rem; font-variant-numeric: tabular-nums; }
.figures td[data-rate] { width: 32%; font-variant-numeric: tabular-nums; }
.figures svg { display: block; width: 100%; height: 12px; margin: .3rem 0 .1rem; }
.axis { fill: var(--axis); } .interval { fill: var(--interval); } .estimate { fill: var(--estimate); }
.promise { fill: var(--promise); }
@media (max-width: 640px) {
  dl { grid-template-columns: 1fr; } dt { margin-top: .4rem; }
  .figures thead { display: none; }
  .figures tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }
  .figures tr > th, .figures td { border: 0; padding: 0; width: auto !important; }
  .figures .n { padding: 0; } .figures .n::after { content: " " attr(data-unit); }
  .figures td[data-rate]::before { content: attr(data-rate); color: var(--soft); }
}
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; border: 1px solid var(--line);
  padding: 1rem; }
mark { background: #eeecfd; color: #1d232b; border-bottom: 2px solid #4a3fd6; }
@media print { body { font-size: 11px; } h2, tr { break-inside: avoid; } }
"""


def whole_page(title: str, parts: Sequence[str]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it; `parts` are html."""
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
    )
    return head + "\n".join(parts) + "\n</main>\n", "\n</body>\n</html>\n"


def definitions(entries: Mapping[str, str]) -> str:
    """Terms, and what they are."""
    return "<dl>" + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in entries.items()) + "</dl>"
