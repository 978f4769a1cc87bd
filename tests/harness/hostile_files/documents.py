"""Documents, books and mails: odt, epub, eml and rtf."""

import io
import zipfile
from collections.abc import Mapping, Sequence

_OPEN = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
    'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0">'
    "<office:automatic-styles>{}</office:automatic-styles><office:body><office:text>"
)
_CLOSE = "</office:text></office:body></office:document-content>"
_CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book/package.opf"/></rootfiles></container>'
)


def odt(body: str, *, manifest: str = "<manifest/>", styles: str = "") -> bytes:
    """A text whose content is `body`."""
    content = _OPEN.format(styles) + body + _CLOSE
    return _zipped({"META-INF/manifest.xml": manifest, "content.xml": content})


def epub(pages: Mapping[str, str], spine: Sequence[str], *, package: str = "") -> bytes:
    """A book of pages by their names, read in the order of `spine`, or as `package` says."""
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>' for name in pages
    )
    references = "".join(f'<itemref idref="{name}"/>' for name in spine)
    package = package or (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
        f"<spine>{references}</spine></package>"
    )
    files = {f"book/{name}.xhtml": page for name, page in pages.items()}
    return _zipped({"META-INF/container.xml": _CONTAINER, "book/package.opf": package} | files)


def _zipped(files: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


FILES = {
    "spaces.odt": lambda size: odt('<text:s text:c="999999999"/>' * (size // 28)),
    "paragraphs.odt": lambda size: odt("<text:p>x</text:p>" * (size // 4)),
    "deep.odt": lambda size: odt("<text:p>" * 300 + "</text:p>" * 300),
    "one-page.epub": lambda size: epub({"a": "<p>x" * (size // 8)}, ["a"] * (size // 24)),
    "parts.eml": lambda size: b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * (size // 7),
    "nested.eml": lambda size: b"Content-Type: message/rfc822\n\n" * (size // 30),
    "parameters.eml": lambda size: b"Content-Type: text/plain; " + b"a=b;" * (size // 4) + b"\n\nx",
    "deep.rtf": lambda size: rb"{\rtf1 " + b"{" * (size // 2) + b"}" * (size // 2),
    "digits.rtf": lambda size: rb"{\rtf1 \u" + b"9" * size + b"}",
}
