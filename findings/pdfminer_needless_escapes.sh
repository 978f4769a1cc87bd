#!/usr/bin/env bash
# pdfminer.six 20260107: a backslash before a letter that needs none takes the letter away: "\ " in all strings of AutoCAD's PDFs, so no blank is left.
# Seen: (Strip\ the\ \cable) is read as "Striptheable". pypdf 7.1.0 reads "Strip the \cable": it keeps the backslash before the c. ISO 32000-1,
# 7.3.4.2: where no escape is meant the backslash alone is left out.
# Fails if the letters are kept.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "pdfminer.six==20260107" "pypdf==7.1.0"
"$dir/venv/bin/python" - <<'PY'
import io
import pypdf
from pdfminer.high_level import extract_text

content = rb"BT /F 11 Tf 72 700 Td (Strip\ the\ \cable) Tj ET"
objects = [
    b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
    b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content),
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
]
out, places = b"%PDF-1.7\n", []
for number, body in enumerate(objects, 1):
    places.append(len(out)); out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
start = len(out)
out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
out += b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
read = extract_text(io.BytesIO(out)).strip()
print("pdfminer:", read, "| pypdf:", pypdf.PdfReader(io.BytesIO(out)).pages[0].extract_text())
assert read == "Striptheable", "CHANGED"
PY
