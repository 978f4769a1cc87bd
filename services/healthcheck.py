"""`python -m ttmark.services.healthcheck URL`: exit code 0 for an answer of 2xx; for images without curl.

With the standard library alone: it starts every five seconds in each container, and to import httpx
would be most of its work.
"""

import socket
import sys
import time
from urllib.parse import urlsplit

SECONDS = 2.0
_STATUS = slice(len("HTTP/1.1 "), len("HTTP/1.1 200"))


def answers(url: str) -> bool:
    """Whether the URL is answered with 2xx within two seconds, be it byte by byte."""
    where, end = urlsplit(url), time.monotonic() + SECONDS
    line = b""
    try:
        with socket.create_connection((where.hostname, where.port or 80), timeout=SECONDS) as connection:
            connection.sendall(f"GET {where.path} HTTP/1.0\r\nHost: {where.netloc}\r\n\r\n".encode())
            while len(line) < _STATUS.stop and (left := end - time.monotonic()) > 0:
                connection.settimeout(left)
                piece = connection.recv(_STATUS.stop - len(line))
                if not piece:
                    break
                line += piece
    except OSError:
        return False
    return line[_STATUS].isdigit() and line[_STATUS].startswith(b"2")


if __name__ == "__main__":
    sys.exit(not answers(sys.argv[1]))
