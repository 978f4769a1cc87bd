#!/usr/bin/env bash
# pdfminer.six 20260107: a ligature of the 14 standard fonts has no width where the file's ToUnicode names its letters, whatever its /Widths say.
# Seen: "of" + the ligature fi, then "ce" set by its true width, is read as "offi ce" by extract_text: all of groff's PDFs have such gaps.
# The font's widths are looked up by the character of ToUnicode ("fi": two letters), and the table of the standard fonts has U+FB01.
# Valid: ISO 32000-1, 9.6.2 (a standard font may have /Widths) and 9.10.3 (a code may stand for several characters).
# Fails if the width is read.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "pdfminer.six==20260107"
"$dir/venv/bin/python" - <<'PY'
import io
from pdfminer.high_level import extract_text

def pdf(map_of_letters):
    content = b"BT /F 11 Tf 1 0 0 1 72 700 Tm (of\001) Tj 1 0 0 1 87.279 700 Tm (ce hours) Tj ET"
    widths = " ".join("556" if code == 1 else "500" for code in range(1, 127))
    table = (f"begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <20> <7E> <0020> endbfrange {map_of_letters} endcmap").encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content),
        (f"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /FirstChar 1 /LastChar 126 /Widths [{widths}] /ToUnicode 6 0 R "
         "/Encoding << /BaseEncoding /WinAnsiEncoding /Differences [1 /fi] >> >>").encode(),
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(table), table),
    ]
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out)); out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 7\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer << /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start

two = extract_text(io.BytesIO(pdf("1 beginbfchar <01> <00660069> endbfchar"))).strip()
one = extract_text(io.BytesIO(pdf("1 beginbfchar <01> <FB01> endbfchar"))).strip()
print("ToUnicode names f and i:", ascii(two), "| names U+FB01:", ascii(one))
assert two == "offi ce hours" and one == "of\ufb01ce hours", "CHANGED"
PY
