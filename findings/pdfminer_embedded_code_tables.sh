#!/usr/bin/env bash
# pdfminer.six 20260107: text in a composite font whose /Encoding is a table in the file (a CMap stream) is lost without a word; only the table's
# name is looked up, among those that the library brings. WeasyPrint 70.0 writes such tables (/WP-Encod-0) for some pages: all regular text is gone.
# Seen: extract_text gives "" where PDFium (pypdfium2 5.15.2) reads "A coded word". ISO 32000-1, 9.7.5.4 allows the stream.
# Fails if the text is read.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q install "pdfminer.six==20260107" "pypdfium2==5.15.2"
"$dir/venv/bin/python" - <<'PY'
import io
import pypdfium2
from pdfminer.high_level import extract_text

def stream(data, entries=b""):
    return b"<< /Length %d %b>>\nstream\n%b\nendstream" % (len(data), entries, data)

text = "A coded word".encode("utf-16-be").hex().encode()
head = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Own def /CMapType 1 def 1 begincodespacerange <0000> <FFFF> endcodespacerange "
end = b" endcmap CMapName currentdict /CMap defineresource pop end end"
info = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> "
objects = [
    b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /T 5 0 R >> >> >>",
    stream(b"BT /T 11 Tf 72 700 Td <%b> Tj ET" % text),
    b"<< /Type /Font /Subtype /Type0 /BaseFont /T /Encoding 6 0 R /ToUnicode 7 0 R /DescendantFonts [8 0 R] >>",
    stream(head + b"1 begincidrange <0020> <007E> 32 endcidrange" + end, b"/Type /CMap /CMapName /Own " + info),
    stream(head + b"1 beginbfrange <0020> <007E> <0020> endbfrange" + end),
    b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /T /DW 500 /FontDescriptor 9 0 R " + info + b">>",
    b"<< /Type /FontDescriptor /FontName /T /Flags 4 /FontBBox [0 0 500 700] /ItalicAngle 0 /Ascent 700 /Descent 0 /CapHeight 700 /StemV 80 >>",
]
out, places = b"%PDF-1.7\n", []
for number, body in enumerate(objects, 1):
    places.append(len(out)); out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
start = len(out)
out += b"xref\n0 10\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
out += b"trailer << /Size 10 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
read, other = extract_text(io.BytesIO(out)).strip(), pypdfium2.PdfDocument(out)[0].get_textpage().get_text_bounded()
print("pdfminer:", repr(read), "| PDFium:", repr(other))
assert read == "" and other == "A coded word", "CHANGED"
PY
