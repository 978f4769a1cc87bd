"""PDF files: bombs, loops, and content that takes a reader long."""

import zlib
from collections.abc import Callable

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def document(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalogue."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R %b>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        trailer,
        start,
    )
    return bytes(out)


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %b>>\nstream\n%b\nendstream" % (len(data), entries, data)


def page(contents: bytes, *more: bytes, resources: bytes = b"", pages: int = 1, font: bytes = _FONT) -> bytes:
    """A document whose pages all show object 4, the font being object 3."""
    kids = b"5 0 R " * pages
    return document(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%b] >>" % (pages, kids),
        font,
        contents,
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        b"/Resources << /Font << /F 3 0 R >> %b >> >>" % resources,
        *more,
    )


def text_page(text: bytes, font: bytes = _FONT) -> bytes:
    return page(stream(b"BT /F 12 Tf 50 700 Td (%b) Tj ET" % text), font=font)


def _repeated(operators: bytes, unpacked: int) -> Callable[[int], bytes]:
    def make(_: int) -> bytes:
        body = b"BT /F 12 Tf " + operators * (unpacked // len(operators)) + b" ET"
        return page(stream(zlib.compress(body, 9), b"/Filter /FlateDecode "))

    return make


def _bomb(size: int) -> bytes:
    packer = zlib.compressobj(9)
    block = b" " * 2**20
    data = b"".join(packer.compress(block) for _ in range(size // 1_100)) + packer.flush()
    return page(stream(data, b"/Filter /FlateDecode "))


def _nested_bomb(_: int) -> bytes:
    data = zlib.compress(zlib.compress(b" " * (1 << 28), 9), 9)
    return page(stream(data, b"/Filter [/FlateDecode /FlateDecode] "))


def _doubling_forms(_: int) -> bytes:
    names = b"/XObject << /X 6 0 R >>"
    forms = []
    for level in range(30):
        entries = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >> "
        forms.append(stream(b"/X Do /X Do", entries % (7 + level)))
    forms.append(stream(b"BT ET", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] "))
    return page(stream(b"/X Do /X Do"), *forms, resources=names)


def _wide_map(_: int) -> bytes:
    cmap = b"begincmap 1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange "
    cmap += b"1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange endcmap"
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /ToUnicode 4 0 R >>"
    return document(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [5 0 R] >>",
        font,
        stream(cmap),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 6 0 R "
        b"/Resources << /Font << /F 3 0 R >> >> >>",
        stream(b"BT /F 12 Tf <00000041> Tj ET"),
    )


def _page_tree_loop(_: int) -> bytes:
    return document(b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Count 9 /Kids [2 0 R 2 0 R] >>")


def _deep_arrays(size: int) -> bytes:
    return page(stream(b"BT ET"), b"[" * (size // 2) + b"]" * (size // 2), resources=b"/X 6 0 R")


def _without_table(size: int) -> bytes:
    return b"%PDF-1.7\n" + b"1 0 obj\n<<>>\n" * (size // 13)


FILES: dict[str, Callable[[int], bytes]] = {
    "bomb.pdf": _bomb,
    "nested-bomb.pdf": _nested_bomb,
    "texts.pdf": _repeated(b"1 0 Td (a) Tj ", 60 * 2**20),
    "arrays.pdf": _repeated(b"[(a) 1 (b) 2] TJ ", 60 * 2**20),
    "fonts.pdf": _repeated(b"/F 9 Tf ", 60 * 2**20),
    "open-strings.pdf": _repeated(b"(", 60 * 2**20),
    "pages.pdf": lambda _: page(stream(b"BT /F 12 Tf (text) Tj ET"), pages=200_000),
    "slow-pages.pdf": lambda _: page(stream(b"BT /F 12 Tf " + b"(a) Tj " * 2_000 + b"ET"), pages=4_000),
    "doubling-forms.pdf": _doubling_forms,
    "wide-map.pdf": _wide_map,
    "page-tree-loop.pdf": _page_tree_loop,
    "deep-arrays.pdf": _deep_arrays,
    "without-table.pdf": _without_table,
}
