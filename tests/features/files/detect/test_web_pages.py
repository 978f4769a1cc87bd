"""What web pages show, as a browser lays them out, written as a model would have."""

import pytest

from ttmark.detect_service.features.files.formats.readers_by_format import extract_text

CODE = "def f(x):\n    if x:\n        return 1\n\n    return 2"
PAGES = {
    "paragraphs": ("<p>a\n  b</p> c <div>d</div>", "a b\n\nc\n\nd"),
    "line ends": ("a <br> b<br/><br><br><br>c<br>", "a\nb\n\nc"),
    "blanks": ("<p> a <b> b </b> c&nbsp;&nbsp;d<!-- x --> <i> </i> e</p>", "a **b** c\xa0\xa0d e"),
    "emphasis": (
        "<p>a <b>b</b>c <em>d <strong>e</strong></em> <code>f</code> "
        "<span style='font-weight: 700'>g</span> <b style='font-weight:normal'>h</b></p>",
        "a **b**c *d* ***e*** `f` **g** h",
    ),
    "headings": ("<h1>a</h1>b<h3>c <b>d</b></h3>", "# a\n\nb\n\n### c d"),
    "bullets": ("<p>a<ul><li>b<li>c<ul><li>d</ul></ul>e", "a\n\n- b\n- c\n  - d\n\ne"),
    "numbers": (
        "<ol start=3><li>a<li value=7>b<ul><li>c</ul><li>d</ol><ol reversed type=i><li>e<li>f</ol>",
        "3. a\n7. b\n   - c\n8. d\n\nii. e\ni. f",
    ),
    "items with space": (
        "<ol type=A><li><p>a</p><p>b</p></li><li><p>c</p></li></ol>",
        "A. a\n\n   b\n\nB. c",
    ),
    "items without marks": ("<ul style='list-style: none'><li>a<li>b</ul>", "a\nb"),
    "definitions": ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\n\nc\nd"),
    "quotations": ("a<blockquote><p>b</p><p>c<br>d</p></blockquote>e", "a\n\n> b\n>\n> c\n> d\n\ne"),
    "lines of a mail": ("<div>a</div><div><br></div><div>1. b</div><div>2. c</div>", "a\n\n1. b\n2. c"),
    "lines of a mail by Outlook": (
        "<p class=Mso>a</p><p class=Mso>&nbsp;</p><p class=Mso>b</p><p class=Mso>c</p>",
        "a\n\nb\nc",
    ),
    "cells": (
        "<table><tr><td><p>a</p><td><div>b</div></tr><tr><th>c<td>d<br>e</table>f",
        "a\tb\nc\td e\n\nf",
    ),
    "a page in a table": ("<table><tr><td><p>a</p><p>b</p><td>c</table>", "a\n\nb\n\nc"),
    "a table in a table": ("<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>", "a\n\nb\tc\n\nd"),
    "a cell without a row": ("<td>a</td><p>b", "a\n\nb"),
    "preformatted": (f"<pre>{CODE}</pre>", CODE),
    "a text field": (f"<textarea>{CODE}</textarea>", CODE),
    "code": (
        f"<p>a<pre><code class='language-python'>{CODE}</code></pre>b",
        f"a\n\n```python\n{CODE}\n```\n\nb",
    ),
    "code as pandoc has it": (
        "<pre class='sourceCode bash'><code>ls<br>cd</code></pre>",
        "```bash\nls\ncd\n```",
    ),
    "kept white space": ("<div style='white-space: pre-wrap'>a\n\n  b</div>", "a\n\n  b"),
    "hidden": (
        "<p>a<span style='display:none'>b</span><span hidden>c</span><script>d</script>"
        "<svg><title>e</title></svg><dialog>f</dialog><noscript>g</noscript></p>h",
        "a\n\nh",
    ),
    "a mark without a text": ("<ol><li><li>b</ol><li>c", "2. b\n- c"),
    "behind the end": ("<html><body><p>a</p></body></html>b<p>c", "a\n\nb\n\nc"),
    **{
        f"unknown: {name}": (
            f"<p>We met at the <{name}>old</{name}> harbour.</p>",
            "We met at the old harbour.",
        )
        for name in ("o:p", "st1:place", "nobr", "g-emoji")
    },
    **{
        f"{name} first": (
            f"<!DOCTYPE html><meta charset=utf-8><title>no</title><{name}><p>a</p></{name}>",
            "a",
        )
        for name in ("main", "section", "article", "header", "nav", "my-page")
    },
}


@pytest.mark.parametrize(("page", "text"), PAGES.values(), ids=PAGES)
def test_a_page_is_read_as_a_browser_shows_it(page: str, text: str) -> None:
    assert extract_text("a.html", page.encode()).text == text
