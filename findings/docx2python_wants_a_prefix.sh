#!/usr/bin/env bash
# docx2python 3.7.1: a document whose XML declares no prefix "r" (it needs none where it has no relationship) ends it with KeyError: 'r',
# which no documentation names; with the unused prefix declared the same document is read. Text of deleted rows of tables and hidden text
# (w:vanish) is given as if it were shown, and text boxes that Word writes in two forms are given twice. Fails if that changes.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "docx2python==3.7.1"
"$dir/venv/bin/python" - <<'PY'
import io
import zipfile

from docx2python import docx2python

X = "http://schemas.openxmlformats.org"
WORDS = f'xmlns:w="{X}/wordprocessingml/2006/main"'
PREFIX = f'xmlns:r="{X}/officeDocument/2006/relationships"'
KIND = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
TYPES = (
    f'<Types xmlns="{X}/package/2006/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{KIND}"/></Types>'
)
RELS = f'<Relationships xmlns="{X}/package/2006/relationships">{{}}</Relationships>'
MAIN = f'<Relationship Id="a" Type="{X}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'


def read(body: str, prefixes: str = f"{WORDS} {PREFIX}") -> str:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr("_rels/.rels", RELS.format(MAIN))
        archive.writestr("word/_rels/document.xml.rels", RELS.format(""))
        archive.writestr("word/document.xml", f"<w:document {prefixes}><w:body>{body}</w:body></w:document>")
    with docx2python(io.BytesIO(file.getvalue())) as document:
        return " ".join(document.text.split())


def run(text: str, look: str = "") -> str:
    return f"<w:r><w:rPr>{look}</w:rPr><w:t>{text}</w:t></w:r>"


plain = f"<w:p>{run('a')}</w:p>"
print("with the prefix:", read(plain))
try:
    read(plain, WORDS)
    raise SystemExit("CHANGED: read without the prefix")
except KeyError as error:
    print("without it: KeyError", error)
hidden = read(f"<w:p>{run('a')}{run('b', '<w:vanish/>')}</w:p>")
print("hidden text:", hidden)
assert hidden == "ab", "CHANGED"
cell = f"<w:tc><w:p>{run('gone')}</w:p></w:tc>"
row = read(f"<w:tbl><w:tr><w:trPr><w:del/></w:trPr>{cell}</w:tr></w:tbl>{plain}")
print("a deleted row:", row)
assert row == "gone a", "CHANGED"
box = f"<w:txbxContent><w:p>{run('box')}</w:p></w:txbxContent>"
mc = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
both = f"<mc:AlternateContent {mc}><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
twice = read(f"<w:p><w:r>{both}</w:r></w:p>")
print("a text box in two forms:", twice)
assert twice.split().count("box") == 2, "CHANGED"
PY
