"""Perl's plain old documentation."""

import html
import re

_POD_CODE = re.compile(r"([A-Z])<(?:<+ )?([^<>]*?)(?: >+)?>")


def from_pod(text: str) -> list[str]:
    """Ordinary paragraphs of perl's pod; commands and verbatim paragraphs are left out."""
    paragraphs = []
    inside = False
    for block in re.split(r"\n\s*\n", text):
        if block.startswith("="):
            inside = not block.startswith(("=cut", "=begin"))
        elif inside and block[:1].strip():
            previous = ""
            while previous != block:
                previous, block = block, _POD_CODE.sub(_pod_text, block)
            paragraphs.append(block)
    return paragraphs


def _pod_text(match: re.Match[str]) -> str:
    code, content = match.groups()
    if code == "E":
        return html.unescape(f"&{content};").replace("<", "\u2039").replace(">", "\u203a")
    if code in "XZ":
        return ""
    return content.partition("|")[0] if code == "L" else content
