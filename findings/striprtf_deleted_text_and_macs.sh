#!/usr/bin/env bash
# striprtf 0.0.35: text that is marked as deleted (\deleted) or hidden (\v) is given as if it were shown, text of which there is a form in
# Unicode (\upr, \*\ud) is lost in both, and bytes of a file that says \mac are read as Windows-1252, in silence: caf\'8e gives a Z
# with a caron in place of an e with an acute. Fails if one of them is read as the page shows it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "striprtf==0.0.35"
"$dir/venv/bin/python" - <<'PY'
from striprtf.striprtf import rtf_to_text

for rtf, shown, seen in (
    (r"{\rtf1\ansi a{\deleted b}{\v c}d}", "ad", "abcd"),
    (r"{\rtf1\ansi {\upr{e}{\*\ud{\u233?}}}}", "\u00e9", ""),
    (r"{\rtf1\mac caf\'8e}", "caf\u00e9", "caf\u017d"),
):
    text = rtf_to_text(rtf)
    print(f"{rtf}: a page shows {shown!r}, read as {text!r}")
    assert text == seen, "CHANGED"
PY
