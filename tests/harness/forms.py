"""Files as a form, byte for byte: what clients of HTTP write under a boundary of their own."""

FORM = {"Content-Type": "multipart/form-data; boundary=b"}
PATHS = ("/v1/content_provenance_checks", "/v1/extract")
_FILE = b'Content-Disposition: form-data; name="file"; filename="%b"'
END = b"--b--\r\n"


def field(content: bytes, name: str = "a.txt", *, head: bytes = b"") -> bytes:
    return b"--b\r\n%b\r\n\r\n%b\r\n" % (head or _FILE % name.encode(), content)


def form(content: bytes, name: str = "a.txt") -> bytes:
    return field(content, name) + END
