#!/usr/bin/env bash
# lxml 6.1.1 (libxml2 2.14): text behind </body></html>, which browsers show as the end of the page, is gone from the tree, and nothing is
# said of it; a page without a body tag whose first element is <main> (HTML allows it) has that element, with all of the page, in its head.
# Fails if the text is there, or the element is in the body.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "lxml==6.1.1"
"$dir/venv/bin/python" - <<'PY'
from lxml import etree, html

print("lxml", etree.LXML_VERSION, "libxml2", etree.LIBXML_VERSION)
for page, seen in (
    ("<html><body><p>a</p></body></html>behind<p>b</p>", "<html><body><p>a</p></body></html>"),
    ("<title>t</title><main><p>a</p></main>", "<html><head><title>t</title><main><p>a</p></main></head></html>"),
):
    parser = html.HTMLParser()
    tree = etree.tostring(html.document_fromstring(page, parser=parser)).decode()
    print(page, "->", tree, "errors:", [entry.message for entry in parser.error_log])
    assert tree == seen, "CHANGED"
PY
